// Deletes the nodes of buckets that nobody has needed for long (store/cas/removal.h).
//
// One instance of the fleet does it at a time: the one whose session owns the ephemeral node
// ROOT/locks/gc. It goes through the directories of ROOT/state, reads each node, and deletes it if
// its time is over and it still has the version that was read. It reads and deletes at most
// nodes_per_second nodes.
//
// A sweeper that was frozen must not delete a node that another sweeper has deleted and an instance
// has created again: versions begin again at 0. So a node is deleted only through the session that
// owned the lock before the node was read; if another sweeper has the lock, that session has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/zookeeper/state_nodes.h"

namespace headgate::store::zookeeper {

struct SweeperOptions {
  std::string root;
  std::string instance;  // the data of the lock, for people
  // Raise it if more keys than this are used for the first time each second, for long.
  uint32_t nodes_per_second = 500;
  // Between two passes over all nodes.
  base::Duration pause = std::chrono::seconds(60);
  // Between two attempts to get the lock.
  base::Duration lock_pause = std::chrono::seconds(10);
};

// The sweeper's loop writes them, any thread reads them.
struct SweeperCounters {
  base::Counter passes;   // over all nodes
  base::Counter looked;   // nodes that were read
  base::Counter removed;  // of these, deleted
  base::Counter foreign;  // of these, not ours or damaged; they stay
  base::Counter failed;   // calls without an answer, or refused
};

class Sweeper {
 public:
  // All must outlive this object, and the client must not call back once it is destroyed. `clock`
  // is the time of decisions.
  Sweeper(client::zookeeper::Client& client, net::EventLoop& loop,
          const base::DisciplinedClock& clock, SweeperOptions options);

  // The owner of the client passes on the events of its listener.
  void OnConnected(bool new_session);
  void Stop() { timer_.Cancel(); }

  const SweeperCounters& counters() const { return counters_; }

 private:
  void OnTime();
  void TakeLock();
  void CheckLock();
  void OnLocked();
  void Step();
  void ListShard();
  void Look(const std::string& name);
  void OnNode(const std::string& path, const absl::StatusOr<client::zookeeper::Node>& node);
  void EndCall();
  void Fail();

  client::zookeeper::Client& client_;
  net::EventLoop& loop_;
  const base::DisciplinedClock& clock_;
  const SweeperOptions options_;
  const StateNodes nodes_;
  const std::string locks_;
  SweeperCounters counters_;
  int64_t lock_session_ = 0;  // the session that owns the lock; 0: none
  uint32_t shard_ = 0;        // the next one
  std::string shard_path_;    // of `names_`
  std::vector<std::string> names_;
  uint32_t in_flight_ = 0;
  uint32_t budget_ = 0;  // calls that may still be made in this slice of a second
  net::Timer timer_;
};

}  // namespace headgate::store::zookeeper
