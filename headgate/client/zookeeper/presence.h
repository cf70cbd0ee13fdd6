// Shows that this instance is alive by an ephemeral node, and counts such nodes:
//
//   DIRECTORY/NAME   {"host": "web-3", "version": "0.1.0", "started": "2026-11-25T10:40:11Z",
//                     "rules_generation": 4, "rules_fingerprint": "5e0c1a9b72d34f68"}
//
// The node is made again in each new session, and if somebody deletes it. If a node of this name
// belongs to another session, which is an earlier one of this instance, it is deleted first. So two
// running instances must not have the same name. Two nodes of one instance are never counted.
//
// If the nodes of all instances have expired (after a long outage of the ensemble), they come back
// one by one. So the count does not fall for `settle` after a new session.
//
// For the thread of the client's loop, except instances().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"

namespace headgate::client::zookeeper {

struct PresenceInfo {
  std::string version{};
  base::WallTime started{};
  // Counts the sets of rules that this instance has put in force; 0: none yet.
  uint64_t rules_generation = 0;
  // Equal for instances whose rules come from equal documents; empty: there are no rules yet.
  std::string rules_fingerprint{};
};

// The data of an instance's node: JSON with the name of this machine.
std::string PresenceData(const PresenceInfo& info);

struct PresenceOptions {
  std::string directory;  // the path of the node above all instances; made if it is missing
  std::string name;       // the name of this instance's node
  std::string data;
  // Between two attempts, and between two counts.
  base::Duration pause = std::chrono::milliseconds(200);
  base::Duration settle = std::chrono::seconds(10);
  // Between two changes of the node's data.
  base::Duration write_pause = std::chrono::seconds(1);
  // The ensemble refused to make the node or to count, with this error; empty when it works again.
  // Each change is reported once.
  std::function<void(const std::string& error)> on_error{};

  // If set, the node's data is written again this often, to measure this clock against the
  // leader's: it is `offset` ahead, with an error of at most `uncertainty`.
  std::function<base::Instant()> clock{};
  base::Duration clock_pause = std::chrono::seconds(10);
  std::function<void(base::Duration offset, base::Duration uncertainty)> on_offset{};
};

class Presence {
 public:
  // Both must outlive this object, and the client must not call back once it is destroyed.
  Presence(Client& client, net::EventLoop& loop, PresenceOptions options);

  // The owner of the client passes on the events of its listener. Events of other paths do nothing.
  void OnConnected(bool new_session);
  void OnWatch(const WatchEvent& event);
  // Changes the node's data, soon. If several changes come together, the last one is written.
  void Describe(std::string data);
  // Deletes the node at once, then calls `done`, also if there is no answer. Ends the counting. May
  // be called again.
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
  void Write();
  void OnWritten(const std::string& data, const absl::Status& status);
  void WriteSoon();
  bool WriteIsDue() const;
  void Compare(base::Instant asked, const NodeStat& stat) const;
  void Count();
  void OnCounted(const absl::StatusOr<Children>& children);
  void Fail(const absl::Status& status);
  void Report(const std::string& error);

  Client& client_;
  net::EventLoop& loop_;
  const PresenceOptions options_;
  const std::string path_;
  std::string data_;
  std::string written_;  // the data of the node, if it is known
  base::BootTime write_at_{0};
  base::BootTime compare_at_{0};  // with the leader's clock
  bool made_ = false;             // in this session
  bool busy_ = false;             // a call is in flight
  bool again_ = false;            // something happened meanwhile
  bool left_ = false;
  base::BootTime settled_at_{0};
  std::string last_error_;
  std::atomic<uint32_t> known_{1};
  base::Counter errors_;
  net::Timer timer_;
  net::Timer write_timer_;
};

}  // namespace headgate::client::zookeeper
