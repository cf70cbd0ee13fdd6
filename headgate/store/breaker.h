// A circuit breaker: decides whether to call a shard that has been failing. It saves callers from
// waiting for a shard that does not answer, and a recovering shard from calls of all clients at
// once.
//
//   closed    --5 failures in a row, and no answer while it was asked for 250 ms-->  open
//   open      --0.5 s over, doubling to 5 s, with jitter-->  half open: one call passes, the probe
//   half open --probe succeeds-->  closed;   --probe fails-->  open, for twice as long
//
// The breaker stays closed for a server that answers, be it late. If a burst exceeds the server's
// capacity, or every second call fails, the server still answers as many calls as it can (decision
// 0011). The time between bursts, in which nobody asks, says nothing about the server.
//
// Pure: takes events and the time, returns decisions. Not thread-safe; one per shard and event
// loop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"

namespace headgate::store {

struct BreakerOptions {
  // The breaker opens after this many failures without a success in between. Raise it for a store
  // that often loses single calls.
  uint32_t failures_in_row = 5;
  // The least time for which calls wait without an answer before the breaker opens; if calls are
  // refused, the least time between the first of these failures and the last. Raise it if the store
  // sometimes pauses for longer and recovers; meanwhile each decision waits for its timeout.
  base::Duration no_progress = std::chrono::milliseconds(250);
  // How long the breaker stays open at first, and at most; the time doubles after each failed
  // probe. A store that has recovered is used again within open_max plus the jitter, 6.25 s, even
  // if its connection never broke.
  base::Duration open_min = std::chrono::milliseconds(500);
  base::Duration open_max = std::chrono::seconds(5);
  // The jitter, in both directions, that keeps the probes of many instances apart.
  uint32_t jitter_percent = 25;

  bool operator==(const BreakerOptions&) const = default;
};

class Breaker {
 public:
  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };
  // The permission for a call. Pass it to Finish with the outcome of the call.
  enum class Pass : uint8_t { kRefused, kCall, kProbe };
  enum class Outcome : uint8_t {
    kSuccess,
    kFailure,   // refused, or the connection ended
    kNoAnswer,  // timed out
    kNeither,   // says nothing about the shard: never sent, or refused because of its content
  };

  Breaker(const BreakerOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  // Whether a call is permitted now. For every pass except kRefused, the caller must call Finish
  // exactly once.
  Pass Ask(base::BootTime now);
  void Finish(Pass pass, Outcome outcome, base::BootTime now);

  // A call that had timed out was answered after all.
  void OnLateAnswer(base::BootTime now) {
    failed_in_row_ = 0;
    ProbeSoon(now);
  }

  // Call it on a sign that the shard is alive: the next call may then be the probe.
  void ProbeSoon(base::BootTime now) {
    if (state_ == State::kOpen) open_until_ = std::min(open_until_, now);
  }

  // Whether a probe has been permitted for at least `idle`, but no call has come that could be the
  // probe. The owner of the breaker should then send one; otherwise the breaker of an idle client
  // stays open.
  bool LacksProbe(base::Duration idle, base::BootTime now) const {
    return state_ != State::kClosed && !probing_ && now - open_until_ >= idle;
  }

  State state() const { return state_; }
  // If open: when the probe is permitted.
  base::BootTime open_until() const { return open_until_; }
  // How often the breaker opened.
  uint64_t opened() const { return opened_; }

 private:
  void Open(base::BootTime now);
  void Close();

  const BreakerOptions options_;
  base::Random random_;
  State state_ = State::kClosed;
  bool probing_ = false;  // half open: the probe is in progress
  uint32_t calls_under_way_ = 0;
  base::BootTime asked_since_{0};  // while calls are in flight
  uint32_t failed_in_row_ = 0;     // while closed
  base::Duration failing_for_{0};  // how long these calls had waited
  base::BootTime finished_at_{0};  // the last success or failure
  uint32_t opened_in_row_ = 0;     // openings since it was last closed
  base::BootTime open_until_{0};
  uint64_t opened_ = 0;
};

}  // namespace headgate::store
