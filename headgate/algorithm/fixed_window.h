// Fixed window: at most `requests` in each window. A window begins at a multiple of the period
// since the epoch, at the start of a UTC week, month or year, or with the first admitted hit while
// no window is open. Around the edge between two windows, it admits up to twice its requests within
// one period.
#pragma once

#include <limits>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

Decision DecideFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now);

// As Charge and Undo (decide.h). `now` is not before the latest time seen.
void ChargeFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now);
void UndoFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant taken_at,
                     base::Instant now);

// The counter of a window stops at its largest value: if it overflowed, the window would look
// empty.
inline uint32_t SaturatingSum(uint32_t count, Cost cost) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  return cost > kMax - count ? kMax : count + static_cast<uint32_t>(cost);
}

// The end of the window that contains `now`; for first_hit, of the window that would begin at
// `now`.
base::Instant WindowEnd(const Limit& limit, base::Instant now);

}  // namespace headgate::algorithm
