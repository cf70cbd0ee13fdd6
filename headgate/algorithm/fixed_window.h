// Fixed window: at most `requests` in each window. A window begins at a multiple of the period
// since the epoch, with a UTC month or year, or with the first admitted hit while none is open.
// Admits up to twice its requests across an edge.
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

Decision DecideFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now);

// The end of the window that holds `now` (for first_hit: that would begin at `now`).
base::Instant WindowEnd(const Limit& limit, base::Instant now);

}  // namespace headgate::algorithm
