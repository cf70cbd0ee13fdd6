#include "headgate/algorithm/sliding_window_counter.h"

#include <algorithm>

#include "headgate/algorithm/fixed_window.h"
#include "headgate/algorithm/token_bucket.h"

namespace headgate::algorithm {
namespace {

using base::uint128;
using base::WideMul;

// The least offset x in the next window at which at most `room` of `weight` earlier hits still
// count: the least x with weight·(P − x) ≤ room·P.
uint64_t LeastOffset(uint64_t period, uint32_t weight, uint64_t room) {
  if (weight <= room) return 0;
  return period - static_cast<uint64_t>(WideMul(room, period) / weight);
}

base::Duration RetryAfter(uint64_t period, WindowCounts counts, uint64_t offset, uint64_t capacity,
                          Cost cost) {
  const uint64_t most_before = capacity - cost;  // the most earlier hits that leave enough room
  uint64_t at;
  if (counts.current <= most_before) {
    at = LeastOffset(period, counts.previous, most_before - counts.current);
  } else {
    at = period + LeastOffset(period, counts.current, most_before);
  }
  return base::Duration(static_cast<int64_t>(at - offset));
}

}  // namespace

uint64_t AdvanceWindows(const Limit& limit, BucketState& state, base::Instant now) {
  const uint64_t period = limit.period();
  const uint64_t seen_offset =
      limit.period_divider().Remainder(static_cast<uint64_t>(state.seen.ns));
  const uint64_t offset = seen_offset + static_cast<uint64_t>(now.ns - state.seen.ns);
  state.seen = now;
  if (offset < period) return offset;
  WindowCounts counts = WindowCounts::Of(state);
  counts.previous = offset < 2 * period ? counts.current : 0;
  counts.current = 0;
  counts.StoreIn(state);
  return limit.period_divider().Remainder(static_cast<uint64_t>(now.ns));
}

Decision DecideSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                                    base::Instant now) {
  if (limit.denies_all()) return DenyAll(limit, cost);
  const uint64_t offset = AdvanceWindows(limit, state, std::max(now, state.seen));
  const uint64_t period = limit.period();
  const uint64_t capacity = limit.capacity();
  WindowCounts counts = WindowCounts::Of(state);
  const uint128 carried = WideMul(counts.previous, period - offset);  // in 1/P hits

  bool allowed = cost == 0;
  if (!allowed && cost <= capacity && counts.current <= capacity - cost) {
    allowed = carried <= WideMul(capacity - cost - counts.current, period);
  }
  const bool overdraw = limit.spec().overdraw;
  if (overdraw && counts.current <= capacity)
    allowed = allowed || carried <= WideMul(capacity - counts.current, period);
  Decision decision{.allowed = allowed, .limit = capacity};
  if (allowed || limit.spec().count_denied) {
    counts.current = SaturatingSum(counts.current, cost);
    counts.StoreIn(state);
  }
  if (!allowed) {
    // Computed after counting: if a denied request counts, a retry has to wait for that hit as
    // well.
    const Cost needed = overdraw ? 0 : cost;
    decision.retry_after =
        needed > capacity ? kNever : RetryAfter(period, counts, offset, capacity, needed);
  }
  if (counts.current < capacity) {
    const uint64_t room = capacity - counts.current;
    const uint64_t carried_whole =
        carried == 0 ? 0 : static_cast<uint64_t>(base::CeilDiv(carried, period));
    decision.remaining = carried_whole < room ? room - carried_whole : 0;
    decision.overdrawn = carried_whole > room;
  } else {
    decision.overdrawn = counts.current > capacity || carried > 0;
  }
  if (counts.current > 0) {
    decision.reset_after = base::Duration(static_cast<int64_t>(2 * period - offset));
  } else if (counts.previous > 0) {
    decision.reset_after = base::Duration(static_cast<int64_t>(period - offset));
  }
  // The wait of the next request after the remaining ones.
  if (decision.remaining < capacity)
    decision.more_after = RetryAfter(period, counts, offset, capacity, decision.remaining + 1);
  return decision;
}

void ChargeSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                                base::Instant now) {
  AdvanceWindows(limit, state, now);
  WindowCounts counts = WindowCounts::Of(state);
  counts.current = SaturatingSum(counts.current, cost);
  counts.StoreIn(state);
}

void UndoSlidingWindowCounter(const Limit& limit, BucketState& state, Cost cost,
                              base::Instant taken_at, base::Instant now) {
  const uint64_t offset = AdvanceWindows(limit, state, now);
  const auto ago = static_cast<uint64_t>((now - taken_at).count());
  WindowCounts counts = WindowCounts::Of(state);
  if (ago <= offset) {
    counts.current -= static_cast<uint32_t>(std::min<Cost>(cost, counts.current));
  } else if (ago - offset <= limit.period()) {
    counts.previous -= static_cast<uint32_t>(std::min<Cost>(cost, counts.previous));
  }
  counts.StoreIn(state);
}

}  // namespace headgate::algorithm
