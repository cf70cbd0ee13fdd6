// What a bucket owes to its leases, computed here when it is carried over to another limit; else the scripts do it
// (scripts/leases.lua).
#pragma once

#include <string>
#include <string_view>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/store/hit_list.h"

namespace headgate::store {

// Makes at least what is granted and not reported count as consumed at `now`: by the leases that are alive, and by the
// others up to when they expired. `leases` is as it lies in a value.
//
// Token buckets and windows keep such leases, and count them until they expire. A queue and a log cannot: under these
// all of it counts as spent in the instant in which the last lease expires, and the bucket's time moves on to that.
// Until the store's clock is there a queue drains nothing.
void HoldOwed(const algorithm::Limit& limit, std::string_view leases, algorithm::BucketState& state, HitList& hits,
              base::Instant now);

// Those that a bucket of `limit` keeps: alive at `now`, and none for a queue or a log.
std::string KeptLeases(const algorithm::Limit& limit, std::string_view leases, base::Instant now);

}  // namespace headgate::store
