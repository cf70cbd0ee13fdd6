// Compares, slowly, the known nodes with the nodes of the ensemble. It finds the changes that fired
// no watch: a server fires none for a client that may not read the node at that moment, and drops
// the watch all the same.
//
// One round begins a `pause` after the last one has ended. At most kLooksAtOnce paths are asked for
// every kLookPause, so that many documents, and many instances, do not load the ensemble.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"

namespace headgate::watch::zookeeper {

class Comparison {
 public:
  static constexpr size_t kLooksAtOnce = 100;
  static constexpr base::Duration kLookPause = std::chrono::milliseconds(100);

  using Stat = absl::StatusOr<client::zookeeper::NodeStat>;
  struct Callbacks {
    // All paths of a round.
    std::function<std::vector<std::string>()> paths;
    // Asks the ensemble for one of them.
    std::function<void(const std::string& path, std::function<void(const Stat& stat)> done)> look;
    // Called with each answer. Returns whether it shows a change that was missed.
    std::function<bool(const std::string& path, const Stat& stat)> compare;
    // Called after a round that has found missed changes.
    std::function<void(const std::vector<std::string>& missed)> on_missed;
  };

  Comparison(net::EventLoop& loop, base::Duration pause, Callbacks callbacks);

 private:
  void Begin();
  void LookAtMore();
  void EndIfAnswered();

  const base::Duration pause_;
  const Callbacks callbacks_;
  std::vector<std::string> paths_;  // still to be asked for
  std::vector<std::string> missed_;
  size_t unanswered_ = 0;
  net::Timer timer_;
  net::Timer look_timer_;
};

}  // namespace headgate::watch::zookeeper
