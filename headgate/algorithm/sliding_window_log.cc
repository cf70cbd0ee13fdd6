#include "headgate/algorithm/sliding_window_log.h"

#include <algorithm>
#include <limits>

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

// Returns false if the log has no room.
//
// Decisions need only the newest N + 1 requests, for a limit of N: one more than N says that the
// log is overdrawn. Older ones matter only if a charge is undone, and are kept while there is room.
bool AddCharge(const Limit& limit, BucketState& state, HitLog& hits, Cost cost, base::Instant now) {
  const uint64_t charged = std::min<Cost>(cost, std::numeric_limits<uint32_t>::max());
  if (state.count + charged > limit.capacity()) {
    size_t size = hits.size();
    while (size > std::max(limit.capacity(), kChargedHitsMin) &&
           state.count - hits.Oldest().cost + charged > limit.capacity()) {
      state.count -= hits.Oldest().cost;
      hits.DropOldest();
      --size;
    }
  }
  const auto added = static_cast<uint32_t>(
      std::min<uint64_t>(charged, std::numeric_limits<uint32_t>::max() - state.count));
  if (added == 0 || !hits.Append({now, added})) return false;
  state.count += added;
  return true;
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
  const bool fits = cost <= capacity && state.count + cost <= capacity;
  Decision decision{.limit = capacity};
  if (limit.spec().overdraw && cost > 0 && !fits) {
    decision.allowed = state.count <= capacity && AddCharge(limit, state, hits, cost, now);
    if (!decision.allowed) {
      decision.retry_after =
          hits.empty()
              ? base::Duration(static_cast<int64_t>(limit.period()))
              : UntilFewer(limit, hits, std::max<uint64_t>(1, state.count - capacity), now);
    }
  } else if (cost > capacity) {
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
  if (!hits.empty()) {
    decision.reset_after = UntilGone(limit, hits.Newest(), now);
    decision.more_after =
        UntilFewer(limit, hits, state.count + decision.remaining + 1 - capacity, now);
  }
  decision.overdrawn = state.count > capacity;
  return decision;
}

void ChargeSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                            base::Instant now) {
  DropExpired(limit, state, hits, now);
  if (cost > 0) AddCharge(limit, state, hits, cost, now);
}

void UndoSlidingWindowLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                          base::Instant taken_at, base::Instant now) {
  DropExpired(limit, state, hits, now);
  state.count -= hits.ReduceAt(taken_at, cost);
}

}  // namespace headgate::algorithm
