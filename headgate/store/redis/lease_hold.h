// What leases hold of a token bucket, computed here where a bucket is carried over to another limit; else the script
// does it (scripts/meter.lua).
#pragma once

#include <string_view>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::store::redis {

// Moves the bucket's edge so that at least what is granted and not reported is owed: by the leases alive at `now`, and
// by the others up to when they expired. `leases` is as it is behind the state of a value; other algorithms need none.
void HoldOwed(const algorithm::Limit& limit, std::string_view leases, algorithm::BucketState& state, base::Instant now);

}  // namespace headgate::store::redis
