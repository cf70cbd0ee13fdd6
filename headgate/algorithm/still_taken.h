// How much of an earlier request a bucket still lacks, computed without the bucket. An undo
// (decide.h) gives back no more than this, but answers with the rest of the bucket, not with the
// amount that came back. The answer to a settlement has to state this amount
// (front/api/reserve_handler.h).
#pragma once

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The part of `cost`, admitted at `taken_at`, that is surely missing at `now`, whatever other
// requests there were:
//
//   token and leaky bucket      cost, less what has refilled since
//   fixed window (not first     all of it in the same window, and nothing later
//   hit), sliding counter
//   others                      nothing: it depends on other requests
Cost StillTaken(const Limit& limit, Cost cost, base::Instant taken_at, base::Instant now);

}  // namespace headgate::algorithm
