// Sliding window counter: two counters, of the current and the previous window, the previous one
// weighed by how much of it the sliding window still covers. No hard bound per window (up to twice,
// for an adversary), but smooth and small.
//
//   x = now mod P     estimate = previous·(P − x)/P + current     allowed iff estimate + cost ≤
//   requests
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// The two counters as one word of state.
struct WindowCounts {
  uint32_t current = 0;
  uint32_t previous = 0;

  static WindowCounts Of(const BucketState& state) {
    return {static_cast<uint32_t>(state.edge), static_cast<uint32_t>(state.edge >> 32)};
  }
  void StoreIn(BucketState& state) const { state.edge = uint64_t{previous} << 32 | current; }
};

// Moves the state on to the window that holds `now` (not before state.seen); returns how far into
// it that is.
uint64_t AdvanceWindows(const Limit& limit, BucketState& state, base::Instant now);

Decision DecideSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                                    base::Instant now);

}  // namespace headgate::algorithm
