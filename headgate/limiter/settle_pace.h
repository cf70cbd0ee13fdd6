// When a node may take from the shared store what it let through without it: as soon as the store
// answers, and slowly enough that a store which is healing hardly notices.
//
//   - one call for every 32 answers of the store, two more a second, at most four at once
//   - after a failure one attempt each half second
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"

namespace headgate::limiter {

class SettlePace {
 public:
  static constexpr int64_t kAnswersPerCall = 32;
  static constexpr int64_t kCallsAtOnce = 4;
  static constexpr base::Duration kCallEvery = std::chrono::milliseconds(500);

  // The store has answered somebody.
  void OnAnswer() { credit_ = std::min(credit_ + 1, kCallsAtOnce * kAnswersPerCall); }

  // It could not be asked.
  void OnAway(base::BootTime now) {
    next_ = now + kCallEvery;
    credit_ = std::min(credit_, int64_t{0});
    slow_next_ = std::max(slow_next_, next_);
  }

  // Whether a call may be made now; takes it.
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

  // When Take may be worth a try.
  base::BootTime next() const { return next_; }

 private:
  static constexpr base::Duration kLookEvery = std::chrono::milliseconds(50);

  int64_t credit_ = 0;  // in answers
  base::BootTime next_{0};
  base::BootTime slow_next_{0};
};

}  // namespace headgate::limiter
