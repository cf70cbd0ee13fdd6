// Counts the instances that share a store: each reports every two seconds that it is alive, and
// gets the number of instances. One per process; it lives on one event loop, and all loops use the
// number.
//
// The store holds a sorted set of instances by the time of their last beat, on the store's clock.
// An instance that was silent for three beats is dropped by the next beat of any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headgate/base/counter.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/redis/client.h"

namespace headgate::store::redis {

// The number of instances, derived from the set in the store. The set may have been lost, and then
// fills again as each instance beats. So an instance that does not find itself in the set keeps the
// number it knew until all instances have had time to beat. Not thread-safe.
class InstanceCount {
 public:
  explicit InstanceCount(base::Duration silence_max) : silence_max_(silence_max) {}

  // The set has `heard` members, including this instance, which may have been `missing` before, as
  // it is at the first beat.
  // Returns the number of instances.
  uint32_t OnHeard(uint32_t heard, bool missing, base::BootTime now);

 private:
  const base::Duration silence_max_;
  uint32_t known_ = 0;  // 0: no answer yet
  std::optional<base::BootTime> suspected_until_;
};

struct HeartbeatOptions {
  std::string key = "hg:instances";
  base::Duration interval = std::chrono::seconds(2);
  // An instance is dropped after this long without a beat.
  base::Duration silence_max = std::chrono::seconds(7);
  // The store answered a beat with this error; an empty error means that it counts this instance
  // again. Called on the client's loop, once for each change. A store that does not answer causes
  // no call.
  std::function<void(const std::string& error)> on_error{};
};

class Heartbeat {
 public:
  // `instance` names this process; no other process has this name. Begins at once, on the client's
  // loop, which must outlive the heartbeat.
  Heartbeat(Client& client, std::string instance, HeartbeatOptions options = {});

  // The number last known, also while the store is unreachable or refuses to count; 1 if it never
  // answered. From any thread.
  uint32_t instances() const { return state_->known.load(std::memory_order_relaxed); }
  // Beats that the store answered with an error, most likely a missing right. From any thread.
  uint64_t errors() const { return state_->errors.value(); }

  // Removes this instance from the set at once, and sends no more beats. Calls `done` when the
  // removal is answered or has failed. Call it a second time to remove the entry of a beat that was
  // repeated meanwhile. On the loop's thread.
  void Leave(std::function<void()> done);

 private:
  // The state that follows from the answers.
  struct State {
    explicit State(const HeartbeatOptions& options)
        : on_error(options.on_error), count(options.silence_max) {}
    void OnAnswer(const PendingCall::Outcome& reply, base::BootTime now);

    const std::function<void(const std::string& error)> on_error;
    std::atomic<uint32_t> known{1};
    base::Counter errors;
    InstanceCount count;
    std::string last_error;  // empty: the last beat was counted
  };

  void Beat();

  Client& client_;
  const std::string instance_;
  const HeartbeatOptions options_;
  const std::shared_ptr<State> state_;  // outlives the heartbeat while a beat is in flight
  net::Timer timer_;
};

}  // namespace headgate::store::redis
