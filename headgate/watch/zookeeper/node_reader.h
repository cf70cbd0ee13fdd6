// Reads many nodes, each with a watch.
//
// When a session comes back, the C client sends the paths of all its watches in one packet, and a
// server takes at most 1 MiB. So the watches are spread over several sessions, each with at most
// kWatchedBytesMax of paths.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/net/event_loop.h"
#include "headgate/zookeeper/client.h"

namespace headgate::watch::zookeeper {

class NodeReader {
 public:
  static constexpr size_t kWatchedBytesMax = 400'000;
  static constexpr size_t kReadsAtOnce = 500;

  struct Callbacks {
    // The answer to a Read. Called once for each.
    std::function<void(const std::string& path, absl::StatusOr<headgate::zookeeper::Node> node)>
        on_node;
    std::function<void(const headgate::zookeeper::WatchEvent& event)> on_watch;
    // This node may have changed while its watch was away.
    std::function<void(const std::string& path)> on_doubt;
  };

  // `first` is the first session; it reports its watches and connections itself. Both must outlive
  // the reader. Others are opened like it, when they are needed.
  NodeReader(headgate::zookeeper::Client& first, headgate::zookeeper::ClientOptions options,
             net::EventLoop& loop, Callbacks callbacks);

  void Read(const std::string& path);
  // The node is gone, and its watch too.
  void Forget(const std::string& path);

  size_t sessions() const { return sessions_.size(); }

 private:
  struct Session {
    headgate::zookeeper::Client* client = nullptr;
    std::unique_ptr<headgate::zookeeper::Client> own{};  // all but the first
    size_t watched_bytes = 0;
  };

  Session& SessionOf(const std::string& path);
  void Open();
  void OnConnected(size_t session);
  void Pump();

  const headgate::zookeeper::ClientOptions options_;
  net::EventLoop& loop_;
  const Callbacks callbacks_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<std::string, size_t> session_of_;  // by path
  std::deque<std::string> queue_;
  size_t in_flight_ = 0;
  bool pumping_ = false;
};

}  // namespace headgate::watch::zookeeper
