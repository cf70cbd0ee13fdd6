// Sliding window counter: counts the hits of the current and the previous window. The previous
// count is weighted by the part of that window which the sliding window still covers. It has no
// hard bound per window (an adversary gets up to twice its requests), but it is smooth and small.
//
//   x = now mod P     estimate = previous·(P − x)/P + current
//   allowed iff estimate + cost ≤ requests
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// The two counters, packed into one word of the state.
struct WindowCounts {
  uint32_t current = 0;
  uint32_t previous = 0;

  static WindowCounts Of(const BucketState& state) {
    return {static_cast<uint32_t>(state.edge), static_cast<uint32_t>(state.edge >> 32)};
  }
  void StoreIn(BucketState& state) const { state.edge = uint64_t{previous} << 32 | current; }
};

// Advances the state to the window that contains `now` (not before state.seen). Returns the offset
// of `now` in that window.
uint64_t AdvanceWindows(const Limit& limit, BucketState& state, base::Instant now);

Decision DecideSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                                    base::Instant now);

// As Charge and Undo (decide.h). `now` is not before the latest time seen.
void ChargeSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                                base::Instant now);
void UndoSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                              base::Instant taken_at, base::Instant now);

}  // namespace headgate::algorithm
