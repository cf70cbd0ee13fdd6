// Sliding window log: exact. Every admitted hit is remembered until it is a period old; never more
// than `requests` in any interval (t − P, t]. Costs memory per hit, which is why Limit::Make bounds
// its requests.
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// Where the log has no room for another hit the request is denied until its oldest hit leaves:
// rather too few than too many. The caller makes room beforehand where it can.
Decision DecideSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now);

// Forgets the hits that are a period old.
void DropExpired(const Limit& limit, BucketState& state, HitLog& hits, base::Instant now);

}  // namespace headgate::algorithm
