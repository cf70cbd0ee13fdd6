// Which limits have to do with leases. A grant is a promise that what it holds is not needed elsewhere, so a bucket
// whose every request has to reach the store gives none.
#pragma once

#include "headgate/algorithm/limit.h"

namespace headgate::store {

// Whether a bucket of this limit can hold leases, be they granted under it or under a limit that it had before. A queue
// and a log cannot: what is out on lease counts as spent there when the last lease ends.
inline bool KeepsLeases(const algorithm::Limit& limit) {
  return limit.algorithm() != algorithm::Algorithm::kLeakyBucketQueue &&
         limit.algorithm() != algorithm::Algorithm::kSlidingWindowLog;
}

// Whether leases are granted under this limit: not if the bucket cannot hold them, nor of a sliding counter that counts
// denied requests, which have to get there.
inline bool CanLease(const algorithm::Limit& limit) {
  return KeepsLeases(limit) &&
         !(limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter && limit.spec().count_denied);
}

}  // namespace headgate::store
