// How long the calls on one connection to a store wait for their answers. A call is given up when
// one of these is over:
//
//   silence   The store has answered nothing: for the call's timeout; or, if that is more, for
//   twice
//             the longest silence of the last minute, at most `silence_max`. So a store that
//             sometimes pauses for 30 ms still decides.
//   the whole The call has waited too long although the store answers others: until its deadline if
//             this is a burst, so that the store can work it off. If no answer has been quick for
//             as long as that, the queue does not end, and a call waits no longer than the silence
//             allows.
//
// Only the store's time counts: not the time until the call was written, and not the time in which
// this process did not run.
//
// Pure: takes events and the time. Not thread-safe; one per connection.
#pragma once

#include <algorithm>

#include "headgate/base/clock.h"

namespace headgate::store {

class Patience {
 public:
  // A call that waits to be sent, or is in flight.
  struct Waiter {
    base::BootTime started{0};
    base::BootTime sent{0};      // if it is not sent yet: when it started
    base::BootTime deadline{0};  // of the whole call
    base::Duration timeout{0};   // the call waits for at least this long while the store is silent
  };

  explicit Patience(base::Duration silence_max) : silence_max_(silence_max) {}

  // A call was sent while none was in flight: until now the store had nothing to answer.
  void OnFirst(base::BootTime now) { silent_since_ = quick_at_ = now; }

  // An answer arrived, `took` after its call was sent.
  void OnAnswer(base::Duration took, base::Duration timeout, base::BootTime now) {
    if (now - silent_since_ >= Longest(now)) {
      longest_ = now - silent_since_;
      longest_at_ = now;
    }
    silent_since_ = now;
    if (took <= Silence(timeout, now)) quick_at_ = now;
  }

  // Call it after a time in which this process did not run, and which ends now.
  void OnPause(base::Duration length, base::BootTime now) {
    silent_since_ = std::min(silent_since_ + length, now);
    quick_at_ = std::min(quick_at_ + length, now);
  }

  // How long the store may answer nothing.
  base::Duration Silence(base::Duration timeout, base::BootTime now) const {
    return std::max(timeout, std::min(2 * Longest(now), silence_max_));
  }

  // When the call has waited too long although the store answers others.
  base::BootTime WholeEndOf(const Waiter& call, base::BootTime now) const {
    const bool burst = now - quick_at_ < call.deadline - call.started;
    return burst ? call.deadline
                 : std::min(call.started + Silence(call.timeout, now), call.deadline);
  }

  // The time at which the call is given up if the store stays silent.
  base::BootTime EndOf(const Waiter& call, base::BootTime now) const {
    return std::min(std::max(call.sent, silent_since_) + Silence(call.timeout, now),
                    WholeEndOf(call, now));
  }

 private:
  static constexpr base::Duration kMemory = std::chrono::minutes(1);

  base::Duration Longest(base::BootTime now) const {
    return now - longest_at_ < kMemory ? longest_ : base::Duration(0);
  }

  const base::Duration silence_max_;
  base::BootTime silent_since_{0};
  base::BootTime quick_at_{0};
  base::Duration longest_{0};  // the longest silence of the last minute
  base::BootTime longest_at_{0};
};

}  // namespace headgate::store
