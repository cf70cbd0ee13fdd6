// Fixed window: at most `requests` in each window. A window begins at a multiple of the period
// since the epoch, at the start of a UTC month or year, or with the first admitted hit while no
// window is open. Around the edge between two windows, it admits up to twice its requests within
// one period.
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

Decision DecideFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now);

// The end of the window that contains `now`; for first_hit, of the window that would begin at
// `now`.
base::Instant WindowEnd(const Limit& limit, base::Instant now);

}  // namespace headgate::algorithm
