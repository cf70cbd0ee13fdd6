// Sliding window log: exact. Every admitted hit is kept until it is one period old, so any interval
// (t − P, t] has at most `requests` hits. Each hit costs memory, which is why Limit::Make bounds
// the requests.
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// If the log has no room for another hit, the request is denied until the oldest hit expires: it is
// better to admit too few than too many. The caller makes room beforehand if it can.
Decision DecideSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now);

// The least number of hits that a log keeps when it is charged more than its limit. A log with a
// larger limit keeps as many hits as its limit has requests, plus the charge.
inline constexpr uint64_t kChargedHitsMin = 64;

// As Charge and Undo (decide.h). `now` is not before the latest time seen.
void ChargeSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                            base::Instant now);
void UndoSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                          base::Instant taken_at, base::Instant now);

// Removes the hits that are at least one period old.
void DropExpired(const Limit& limit, BucketState& state, HitLog& hits, base::Instant now);

}  // namespace headgate::algorithm
