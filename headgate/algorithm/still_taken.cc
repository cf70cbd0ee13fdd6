#include "headgate/algorithm/still_taken.h"

#include "headgate/algorithm/fixed_window.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {

Cost StillTaken(const Limit& limit, Cost cost, base::Instant taken_at, base::Instant now) {
  if (limit.denies_all() || now < taken_at) return 0;
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket: {
      const auto elapsed = static_cast<uint64_t>((now - taken_at).count());
      const base::uint128 refilled =
          base::CeilDiv(base::WideMul(elapsed, limit.spec().requests),
                        static_cast<uint64_t>(limit.spec().period.count()));
      return refilled < cost ? cost - static_cast<Cost>(refilled) : 0;
    }
    case Algorithm::kFixedWindow:
      if (limit.spec().align == Align::kFirstHit) return 0;
      return WindowEnd(limit, taken_at) == WindowEnd(limit, now) ? cost : 0;
    case Algorithm::kSlidingWindowCounter: {
      const auto period = static_cast<int64_t>(limit.period());
      return taken_at.ns / period == now.ns / period ? cost : 0;
    }
    case Algorithm::kSlidingWindowLog:
    case Algorithm::kLeakyBucketQueue:
      return 0;
  }
  __builtin_unreachable();
}

}  // namespace headgate::algorithm
