// One place in the queue for the lock of a key, as a state machine: ZooKeeper's recipe for locks.
// Does no I/O: it says what to call next, and takes the answers.
//
//   ROOT/locks/KEY/lock-00000000000000a1-0000000007    the holder: the smallest number
//   ROOT/locks/KEY/lock-00000000000000b2-0000000008    watches only …7
//   ROOT/locks/KEY/lock-00000000000000c3-0000000009    watches only …8
//
//   Next                        → create lock-…b2-
//   made, number 8              → list
//   listed 7, 8, 9              → watch 7
//   7 is gone                   → list
//   listed 8, 9                 → held; its fence is the transaction that made the node
//   Leave                       → delete 8
//   deleted                     → end
//
// The nodes are ephemeral: they go with the session of their instance. If the answer to a creation
// is lost, the node may have been made. The node is found again by the random id in its name, also
// to delete it if the place was left meanwhile. If it does not exist, the creation is repeated. A
// place whose creation was repeated ends only when a list shows none of its nodes, because the
// first creation may have been carried out late.
//
// The number in a name is a counter of 32 bits that may wrap, so two numbers are compared by their
// difference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::store::zookeeper {

struct LockAction {
  enum class Kind : uint8_t {
    kWait,       // waits for an event: the answer to a call, OnPredecessorGone, Leave, Retry,
                 // OnSessionLost
    kMakeQueue,  // makes the parent of the nodes
    kCreate,     // an ephemeral, sequential node, whose name begins with `name`
    kSyncAndList,
    kList,
    kRead,    // reads the transaction in which the node `name` was created
    kWatch,   // sets a watch for the removal of the node `name`
    kDelete,  // the node `name`, whatever its version
    kEnd,     // there is no node any more, and no call is in flight
  };
  Kind kind = Kind::kWait;
  std::string name{};  // below the queue's node
};

class LockPlace {
 public:
  // `id`: random; no other place has it.
  explicit LockPlace(uint64_t id);

  // The next step. Call it after each event, and again after each step until it says kWait or kEnd.
  LockAction Next();

  // The answer to the last call. The statuses are those of client/zookeeper/client.h.
  void OnQueueMade(const absl::Status& status);
  void OnCreated(const absl::StatusOr<std::string>& name, uint64_t fence);
  void OnListed(const absl::StatusOr<std::vector<std::string>>& names);
  void OnLooked(const absl::StatusOr<uint64_t>& fence);
  void OnWatched(const absl::Status& status);
  void OnDeleted(const absl::Status& status);

  // The watch on the predecessor's node has fired.
  void OnPredecessorGone();
  // A new session has begun: the nodes of the old session are gone or will go, and answers to its
  // calls do not count any more. If the lock was held, it is lost; otherwise the place queues
  // again.
  void OnSessionLost();
  // A call has failed for now, and it is time to repeat it.
  void Retry() { must_retry_ = false; }
  // Gives the lock back, or stops waiting for it.
  void Leave();

  bool held() const { return state_ == State::kHeld && !left_; }
  uint64_t fence() const { return fence_; }
  bool left() const { return left_; }
  bool must_retry() const { return must_retry_; }
  // Why the lock cannot be obtained, or was lost. The place leaves by itself then.
  const absl::Status& failure() const { return failure_; }

 private:
  enum class State : uint8_t {
    kNoQueue,  // the parent of the nodes is missing
    kNew,      // no node
    kUnsure,   // perhaps there is a node
    kQueued,   // there is a node, its position is not known
    kUnread,   // the node is the first, and its fence is not known
    kBehind,   // the predecessor is known, but not watched yet
    kWatching,
    kHeld,
    kGone,
  };

  bool IsOwn(std::string_view name) const { return name.starts_with(prefix_); }
  void Fail(const absl::Status& status);
  // Repeats the call later, or fails if that is of no use.
  void RetryOrFail(const absl::Status& status);
  void FindPlace(const std::vector<std::string>& names);

  const std::string prefix_;
  State state_ = State::kNew;
  bool in_flight_ = false;
  bool left_ = false;
  bool must_retry_ = false;
  bool repeats_ = false;     // a creation without an answer was repeated, so there may be two nodes
  std::string own_;          // the name of the node, once it is known
  std::string predecessor_;  // only in kBehind and kWatching
  uint64_t fence_ = 0;       // 0: not known
  absl::Status failure_;
};

}  // namespace headgate::store::zookeeper
