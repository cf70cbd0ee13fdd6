#include "headgate/algorithm/fixed_window.h"

#include <algorithm>

#include "headgate/algorithm/calendar.h"
#include "headgate/algorithm/token_bucket.h"

namespace headgate::algorithm {

base::Instant WindowEnd(const Limit& limit, base::Instant now) {
  switch (limit.spec().align) {
    case Align::kCalendarMonth:
    case Align::kCalendarYear:
    case Align::kCalendarWeek:
    case Align::kCalendarDay:
      return NextCalendarEdge(limit.spec().align, limit.spec().zone, now);
    case Align::kFirstHit:
      return base::Instant::FromNanos(now.ns + static_cast<int64_t>(limit.period()));
    case Align::kEpoch:
      break;
  }
  const uint64_t into = limit.period_divider().Remainder(static_cast<uint64_t>(now.ns));
  return base::Instant::FromNanos(now.ns + static_cast<int64_t>(limit.period() - into));
}

Decision DecideFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  if (limit.denies_all()) return DenyAll(limit, cost);
  now = std::max(now, state.seen);
  state.seen = now;
  const uint64_t capacity = limit.capacity();
  const bool open = state.edge > static_cast<uint64_t>(now.ns);
  const base::Instant end =
      open ? base::Instant::FromNanos(static_cast<int64_t>(state.edge)) : WindowEnd(limit, now);
  const uint32_t count = open ? state.count : 0;
  const bool overdraw = limit.spec().overdraw;
  const bool allowed = cost == 0 || (count <= capacity && (overdraw || cost <= capacity - count));

  // Only an admitted hit opens a first_hit window; without an open window, a denied hit is not
  // counted.
  const bool first_hit = limit.spec().align == Align::kFirstHit;
  const bool counts = allowed || (limit.spec().count_denied && (open || !first_hit));
  const uint32_t count_after = counts ? SaturatingSum(count, cost) : count;
  const bool opens = count_after > 0;
  if (opens) {
    state.edge = static_cast<uint64_t>(end.ns);
    state.count = count_after;
  }
  Decision decision{.allowed = allowed,
                    .limit = capacity,
                    .remaining = count_after < capacity ? capacity - count_after : 0,
                    .reset_after = end - now,
                    .overdrawn = count_after > capacity};
  if (first_hit && !open && !opens) decision.reset_after = base::Duration(0);
  if (!allowed) decision.retry_after = cost > capacity && !overdraw ? kNever : end - now;
  return decision;
}

void ChargeFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  if (cost == 0) return;
  if (state.edge <= static_cast<uint64_t>(now.ns)) {
    state.edge = static_cast<uint64_t>(WindowEnd(limit, now).ns);
    state.count = 0;
  }
  state.count = SaturatingSum(state.count, cost);
}

void UndoFixedWindow(const Limit& limit, BucketState& state, Cost cost, base::Instant taken_at,
                     base::Instant now) {
  if (state.edge <= static_cast<uint64_t>(now.ns)) return;
  const auto end = base::Instant::FromNanos(static_cast<int64_t>(state.edge));
  // The end of the window that a take at `taken_at` counted in, or would have opened.
  const bool same = limit.spec().align == Align::kFirstHit ? WindowEnd(limit, taken_at) >= end
                                                           : WindowEnd(limit, taken_at) == end;
  if (same) state.count -= static_cast<uint32_t>(std::min<Cost>(cost, state.count));
}

}  // namespace headgate::algorithm
