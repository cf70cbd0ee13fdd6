// How many instances share a store: each says every two seconds that it lives, and hears how many
// do. One per process; it lives on one event loop, and the number is for all.
//
// In the store: a sorted set of instances by when they were last heard, on the store's clock. Who
// was silent for three beats is dropped by whoever comes next.
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

// How many instances there are, as far as the set in the store tells. The set may have been lost,
// and then fills again as each instance beats: whoever does not find itself in it goes by what it
// knew until all have had the time to. Not thread-safe.
class InstanceCount {
 public:
  explicit InstanceCount(base::Duration silence_max) : silence_max_(silence_max) {}

  // The set has `heard` members, this instance among them, which was `missing` before. Returns how
  // many there are.
  uint32_t OnHeard(uint32_t heard, bool missing, base::BootTime now);

 private:
  const base::Duration silence_max_;
  uint32_t known_ = 1;
  std::optional<base::BootTime> suspected_until_;
};

struct HeartbeatOptions {
  std::string key = "hg:instances";
  base::Duration interval = std::chrono::seconds(2);
  // Dropped after so long without a beat.
  base::Duration silence_max = std::chrono::seconds(7);
  // The store answered a beat with this error, or, if it is empty, counts this instance again.
  // Called on the client's loop, once for each change. A store that does not answer changes nothing
  // here.
  std::function<void(const std::string& error)> on_error{};
};

class Heartbeat {
 public:
  // `instance` is this process' name, which no other has. Begins at once, on the client's loop;
  // must not outlive it.
  Heartbeat(Client& client, std::string instance, HeartbeatOptions options = {});

  // As last known, also while the store is away or refuses to count; 1 if it never said. From any
  // thread.
  uint32_t instances() const { return state_->known.load(std::memory_order_relaxed); }
  // Beats that the store answered with an error: a missing right, most likely. From any thread.
  uint64_t errors() const { return state_->errors.value(); }

  // Takes this instance off the list at once, and beats no more; calls `done` once that is answered
  // or has failed. On the loop's thread.
  void Leave(std::function<void()> done);

 private:
  // What the answers said.
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
  const std::shared_ptr<State> state_;  // outlives this while a beat is under way
  net::Timer timer_;
};

}  // namespace headgate::store::redis
