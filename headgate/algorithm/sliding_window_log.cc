#include "headgate/algorithm/sliding_window_log.h"

#include <algorithm>

#include "headgate/algorithm/token_bucket.h"

namespace headgate::algorithm {
namespace {

base::Duration UntilGone(const Limit& limit, Hit hit, base::Instant now) {
  return (hit.at - now) + base::Duration(static_cast<int64_t>(limit.period()));
}

// The time until the oldest hits, with a total cost of at least `surplus`, have expired.
base::Duration UntilFewer(const Limit& limit, const HitLog& hits, uint64_t surplus,
                          base::Instant now) {
  Hit last{};
  hits.ForEach([&](Hit hit) {
    last = hit;
    if (hit.cost >= surplus) return false;
    surplus -= hit.cost;
    return true;
  });
  return UntilGone(limit, last, now);
}

}  // namespace

void DropExpired(const Limit& limit, BucketState& state, HitLog& hits, base::Instant now) {
  while (!hits.empty()) {
    const Hit oldest = hits.Oldest();
    if (UntilGone(limit, oldest, now) > base::Duration(0)) break;
    state.count -= oldest.cost;
    hits.DropOldest();
  }
}

Decision DecideSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now) {
  if (limit.denies_all()) return DenyAll(limit, cost);
  now = std::max(now, state.seen);
  state.seen = now;
  DropExpired(limit, state, hits, now);
  const uint64_t capacity = limit.capacity();
  Decision decision{.limit = capacity};
  if (cost > capacity) {
    decision.allowed = false;
    decision.retry_after = kNever;
  } else if (cost > 0 && state.count + cost > capacity) {
    decision.allowed = false;
    decision.retry_after = UntilFewer(limit, hits, state.count + cost - capacity, now);
  } else if (cost > 0) {
    if (hits.Append({now, static_cast<uint32_t>(cost)})) {
      state.count += static_cast<uint32_t>(cost);
    } else {
      decision.allowed = false;
      decision.retry_after = hits.empty() ? base::Duration(static_cast<int64_t>(limit.period()))
                                          : UntilGone(limit, hits.Oldest(), now);
    }
  }
  decision.remaining = state.count < capacity ? capacity - state.count : 0;
  if (!hits.empty()) decision.reset_after = UntilGone(limit, hits.Newest(), now);
  return decision;
}

}  // namespace headgate::algorithm
