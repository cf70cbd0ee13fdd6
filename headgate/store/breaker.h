// A circuit breaker: whether to ask a shard that has been failing. It keeps a caller from waiting
// for what will not answer, and a shard that recovers from being asked by everybody at once.
//
//   closed --5 failures in a row, and nothing answered in time for 250 ms--> open (0.5 s, doubling
//   to 5 s, with jitter) open --time is up--> half open: exactly one call goes through, the probe
//   half open --the probe succeeds--> closed;  --it fails--> open, for twice as long
//
// A server that answers anything is not left alone: a burst that is too much for it, or one call in
// two that fails, is answered as far as it can be (decision 0011).
//
// Pure: events and the time come in, answers go out. Not thread-safe; one per shard and event loop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"

namespace headgate::store {

struct BreakerOptions {
  // Opens after this many failures with no success in between. Raise it for a store that often
  // loses single calls.
  uint32_t failures_in_row = 5;
  // And not before this long after the first of them. Raise it where the store pauses for longer
  // and answers again; meanwhile each decision waits for its timeout.
  base::Duration no_progress = std::chrono::milliseconds(250);
  // How long it stays open at first, and at most: it doubles each time the probe fails. A store
  // that is well again is used within open_max and the jitter, 6.25 s, also where its connection
  // stood all the time.
  base::Duration open_min = std::chrono::milliseconds(500);
  base::Duration open_max = std::chrono::seconds(5);
  // More or less, so that a fleet's probes do not come together.
  uint32_t jitter_percent = 25;

  bool operator==(const BreakerOptions&) const = default;
};

class Breaker {
 public:
  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };
  // How a call may go. Hand it back with the call's outcome.
  enum class Pass : uint8_t { kRefused, kCall, kProbe };
  enum class Outcome : uint8_t {
    kSuccess,
    kFailure,
    kNeither,  // it says nothing about the shard: never sent, or refused for what it asked
  };

  Breaker(const BreakerOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  // Whether a call may go now. Every pass but kRefused is answered by exactly one Finish.
  Pass Ask(base::BootTime now);
  void Finish(Pass pass, Outcome outcome, base::BootTime now);

  // There is a sign of life: the next call may be the probe.
  void ProbeSoon(base::BootTime now) {
    if (state_ == State::kOpen) open_until_ = std::min(open_until_, now);
  }

  State state() const { return state_; }
  // While open: when the probe may go.
  base::BootTime open_until() const { return open_until_; }
  // Times that it opened.
  uint64_t opened() const { return opened_; }

 private:
  void Open(base::BootTime now);
  void Close();

  const BreakerOptions options_;
  base::Random random_;
  State state_ = State::kClosed;
  bool probing_ = false;        // half open: the probe is under way
  uint32_t failed_in_row_ = 0;  // while closed
  base::BootTime failing_since_{0};
  uint32_t opened_in_row_ = 0;  // without having been closed in between
  base::BootTime open_until_{0};
  uint64_t opened_ = 0;
};

}  // namespace headgate::store
