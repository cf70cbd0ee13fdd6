// Leaky bucket as a queue: one request leaves every T = period/requests, and at most `burst` wait.
// The decision for an allowed request says how long to hold it; nothing is held here.
//
//   start = max(now, free_at)     wait = start − now     allowed iff wait + (cost − 1)·T ≤ burst·T
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

Decision DecideLeakyQueue(const Limit& limit, BucketState& state, Cost cost, base::Instant now);

}  // namespace headgate::algorithm
