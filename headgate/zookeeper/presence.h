// Shows that this instance is alive by an ephemeral node, and counts such nodes:
//
//   DIRECTORY/NAME   {"host": "web-3", "version": "0.1.0", "started": "2026-11-25T10:40:11Z"}
//
// The node is made again in each new session, and if somebody deletes it. If a node of this name
// belongs to another session, which is an earlier one of this instance, it is deleted first. So two
// running instances must not have the same name, and never are two nodes of one instance counted.
//
// After the nodes of all instances have gone (the ensemble was away for long), they come back one
// by one. So the count does not fall for `settle` after a new session.
//
// For the thread of the client's loop, but for instances().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"
#include "headgate/zookeeper/client.h"

namespace headgate::zookeeper {

// The data of an instance's node: JSON with the name of this machine.
std::string PresenceData(std::string_view version, base::WallTime started);

struct PresenceOptions {
  std::string directory;  // the path of the node above all instances; made if it is missing
  std::string name;       // the name of this instance's node
  std::string data;
  // Between two attempts, and between two counts.
  base::Duration pause = std::chrono::milliseconds(200);
  base::Duration settle = std::chrono::seconds(10);
  // The ensemble refused to make the node or to count, with this error; empty when it works again.
  // Each change is reported once.
  std::function<void(const std::string& error)> on_error{};
};

class Presence {
 public:
  // Both must outlive it, and the client must not call back after its end.
  Presence(Client& client, net::EventLoop& loop, PresenceOptions options);

  // The owner of the client passes on the events of its listener. Events of other paths do nothing.
  void OnConnected(bool new_session);
  void OnWatch(const WatchEvent& event);
  // Deletes the node at once, then calls `done`, also if there is no answer. Ends the counting.
  void Leave(std::function<void()> done);

  // The number last counted; 1 if there was none. From any thread.
  uint32_t instances() const { return known_.load(std::memory_order_relaxed); }
  // Refusals of the ensemble. From any thread.
  uint64_t errors() const { return errors_.value(); }

 private:
  void LookSoon();
  void Look();
  void Make();
  void OnMade(const absl::Status& status);
  void CheckOwner();
  void DeleteForeign(int32_t version);
  void Count();
  void OnCounted(const absl::StatusOr<Children>& children);
  void Fail(const absl::Status& status);
  void Report(const std::string& error);

  Client& client_;
  net::EventLoop& loop_;
  const PresenceOptions options_;
  const std::string path_;
  bool made_ = false;   // in this session
  bool busy_ = false;   // a call is in flight
  bool again_ = false;  // something happened meanwhile
  bool left_ = false;
  base::BootTime settled_at_{0};
  std::string last_error_;
  std::atomic<uint32_t> known_{1};
  base::Counter errors_;
  net::Timer timer_;
};

}  // namespace headgate::zookeeper
