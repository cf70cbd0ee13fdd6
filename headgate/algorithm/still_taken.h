// How much of an earlier request a bucket still lacks. Whoever gives back more of it later than
// this lets through more than a single bucket would: what has come back by itself is there for
// everybody.
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
