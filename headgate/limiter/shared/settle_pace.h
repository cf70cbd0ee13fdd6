// When a node may take its local admissions from the shared store: as soon as the store answers,
// but slowly enough for a store that is still recovering.
//
//   - one call for every 32 answers of the store, two more a second, at most four at once
//   - after a failure one attempt each half second
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"

namespace headgate::limiter::shared {

class SettlePace {
 public:
  static constexpr int64_t kAnswersPerCall = 32;
  static constexpr int64_t kCallsAtOnce = 4;
  static constexpr base::Duration kCallEvery = std::chrono::milliseconds(500);

  // The store has answered a call.
  void OnAnswer() { credit_ = std::min(credit_ + 1, kCallsAtOnce * kAnswersPerCall); }

  // A call to the store failed.
  void OnAway(base::BootTime now) {
    next_ = now + kCallEvery;
    credit_ = std::min(credit_, int64_t{0});
    slow_next_ = std::max(slow_next_, next_);
  }

  // Whether a call may be made now; if so, uses up the permission.
  bool Take(base::BootTime now) {
    if (now < next_) return false;
    if (credit_ >= kAnswersPerCall) {
      credit_ -= kAnswersPerCall;
      return true;
    }
    if (now >= slow_next_) {
      slow_next_ = now + kCallEvery;
      return true;
    }
    next_ = std::min(slow_next_, now + kLookEvery);
    return false;
  }

  // The earliest time at which Take may succeed.
  base::BootTime next() const { return next_; }

 private:
  static constexpr base::Duration kLookEvery = std::chrono::milliseconds(50);

  int64_t credit_ = 0;  // unit: answers
  base::BootTime next_{0};
  base::BootTime slow_next_{0};
};

}  // namespace headgate::limiter::shared
