// Leaky bucket as a queue: requests leave one every T = period/requests; at most `burst` wait. An
// allowed request is told how long to wait before it is let go; nothing is held here.
//
//   start = max(now, free_at)     wait = start − now     allowed iff wait + (cost − 1)·T ≤ burst·T
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

Decision DecideLeakyQueue(const Limit& limit, BucketState& state, Cost cost, base::Instant now);

}  // namespace headgate::algorithm
