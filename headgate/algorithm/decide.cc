#include "headgate/algorithm/decide.h"

namespace headgate::algorithm {
namespace {

void RefundTokens(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  const ExactSpan debt = std::min(Ahead(state, now), SpanOf(limit));
  const ExactSpan refund = Price(limit, std::min<Cost>(cost, limit.capacity()));
  SetAhead(state, now, refund < debt ? Difference(debt, refund, limit.requests()) : ExactSpan{});
}

void RefundWindow(BucketState& state, Cost cost, base::Instant now) {
  if (state.edge <= static_cast<uint64_t>(now.ns)) return;
  state.count -= static_cast<uint32_t>(std::min<Cost>(cost, state.count));
}

void RefundCounter(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  AdvanceWindows(limit, state, now);
  WindowCounts counts = WindowCounts::Of(state);
  counts.current -= static_cast<uint32_t>(std::min<Cost>(cost, counts.current));
  counts.StoreIn(state);
}

void RefundLog(const Limit& limit, BucketState& state, HitLog& hits, Cost cost, base::Instant now) {
  DropExpired(limit, state, hits, now);
  while (cost > 0 && !hits.empty()) {
    const auto taken = static_cast<uint32_t>(std::min<Cost>(cost, hits.Newest().cost));
    hits.ReduceNewest(taken);
    state.count -= taken;
    cost -= taken;
  }
}

// tokens·P = capacity·P − debt·N is a whole number, and P stays the same, so tokens carry over
// exactly. P is the period as written; the algorithms use one that may be reduced by `scale`
// (limit.h). capacity·P < 2^62·N < 2^126.
void ChangeTokens(const Limit& from, const Limit& to, BucketState& state, base::Instant now) {
  const auto period = static_cast<uint64_t>(from.spec().period.count());
  const ExactSpan debt = std::min(Ahead(state, now), SpanOf(from));
  const base::uint128 consumed =
      (base::WideMul(debt.ns, from.requests()) + debt.fraction) * (period / from.period());
  const base::uint128 tokens = base::WideMul(from.capacity(), period) - consumed;
  const base::uint128 full = base::WideMul(to.capacity(), period);
  const base::uint128 missing =
      base::CeilDiv(tokens < full ? full - tokens : 0, period / to.period());
  SetAhead(state, now,
           {static_cast<uint64_t>(missing / to.requests()),
            static_cast<uint32_t>(missing % to.requests())});
}

// The queue keeps its free_at. Its fraction is converted to the new denominator and rounded up.
void ChangeQueue(const Limit& from, const Limit& to, BucketState& state) {
  if (state.count == 0) return;  // true also for a limit of 0 requests, whose denominator is 0
  const base::uint128 scaled = base::WideMul(state.count, to.requests());
  const auto fraction = static_cast<uint64_t>(base::CeilDiv(scaled, from.requests()));
  state.edge += fraction / to.requests();
  state.count = static_cast<uint32_t>(fraction % to.requests());
}

// Resets the consumption of a bucket of `limit` to zero. Only the log may use `hits`: the edge of
// another algorithm does not refer to hits.
void Clear(const Limit& limit, BucketState& state, HitLog& hits, base::Instant now) {
  if (limit.algorithm() == Algorithm::kSlidingWindowLog) {
    while (!hits.empty()) hits.DropOldest();
  }
  state = BucketState{.seen = now};
}

// Turns a cleared bucket into a bucket of `limit` with `remaining` requests left.
void LeaveRemaining(const Limit& limit, uint64_t remaining, BucketState& state, HitLog& hits,
                    base::Instant now) {
  if (limit.denies_all()) return;
  if (limit.algorithm() == Algorithm::kLeakyBucketQueue) {
    // If remaining is burst + 1, the queue is empty.
    if (remaining <= limit.capacity())
      SetAhead(state, now, Price(limit, limit.capacity() + 1 - remaining));
    return;
  }
  const uint64_t used = remaining < limit.capacity() ? limit.capacity() - remaining : 0;
  if (used > 0) Decide(limit, state, hits, used, now);
}

bool SamePeriod(const LimitSpec& a, const LimitSpec& b) {
  return a.align == b.align && (IsCalendar(a.align) || a.period == b.period);
}

}  // namespace

absl::Status RefundRefused() {
  return absl::FailedPreconditionError(
      "a queue takes nothing back: its requests have been promised their turn");
}

absl::StatusOr<Decision> Refund(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now) {
  if (!TakesRefunds(limit.algorithm())) return RefundRefused();
  now = std::max(now, state.seen);
  if (!limit.denies_all()) {
    switch (limit.algorithm()) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
        RefundTokens(limit, state, cost, now);
        break;
      case Algorithm::kFixedWindow:
        RefundWindow(state, cost, now);
        break;
      case Algorithm::kSlidingWindowCounter:
        RefundCounter(limit, state, cost, now);
        break;
      case Algorithm::kSlidingWindowLog:
        RefundLog(limit, state, hits, cost, now);
        break;
      case Algorithm::kLeakyBucketQueue:
        break;
    }
  }
  return Decide(limit, state, hits, 0, now);
}

void Reset(const Limit& limit, BucketState& state, HitLog& hits) {
  Clear(limit, state, hits, base::Instant::FromNanos(0));
}

base::Duration TimeToFull(const Limit& limit) {
  if (limit.denies_all()) return base::Duration(0);
  switch (limit.spec().align) {
    case Align::kCalendarMonth:
      return std::chrono::hours(24 * 31);
    case Align::kCalendarYear:
      return std::chrono::hours(24 * 366);
    case Align::kEpoch:
    case Align::kFirstHit:
      break;
  }
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return RoundUp(SpanOf(limit));
    case Algorithm::kLeakyBucketQueue:
      return RoundUp(SpanOf(limit)) + RoundUp(IntervalOf(limit));
    case Algorithm::kSlidingWindowCounter:
      return base::Duration(static_cast<int64_t>(2 * limit.period()));
    case Algorithm::kFixedWindow:
    case Algorithm::kSlidingWindowLog:
      return base::Duration(static_cast<int64_t>(limit.period()));
  }
  __builtin_unreachable();
}

base::Instant FreshAt(const Limit& limit, const BucketState& state, const HitLog& hits) {
  const base::Instant never_used = base::Instant::FromNanos(0);
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
    case Algorithm::kLeakyBucketQueue:
      return base::Instant::FromNanos(
          static_cast<int64_t>(state.edge + (state.count != 0 ? 1 : 0)));
    case Algorithm::kFixedWindow:
      // A first_hit window stays open even if all its hits have been given back.
      return state.count > 0 || limit.spec().align == Align::kFirstHit
                 ? base::Instant::FromNanos(static_cast<int64_t>(state.edge))
                 : never_used;
    case Algorithm::kSlidingWindowCounter: {
      const WindowCounts counts = WindowCounts::Of(state);
      if (counts.current == 0 && counts.previous == 0) return never_used;
      const auto period = static_cast<int64_t>(limit.period());
      const auto offset = static_cast<int64_t>(
          limit.period_divider().Remainder(static_cast<uint64_t>(state.seen.ns)));
      return base::Instant::FromNanos(state.seen.ns - offset +
                                      (counts.current > 0 ? 2 : 1) * period);
    }
    case Algorithm::kSlidingWindowLog:
      if (hits.empty()) return never_used;
      return base::Instant::FromNanos(hits.Newest().at.ns + static_cast<int64_t>(limit.period()));
  }
  __builtin_unreachable();
}

void Rebase(const Limit& limit, BucketState& state, HitLog& hits, base::Instant& remembered_until,
            base::Instant now) {
  const base::Instant latest = state.seen;
  const uint64_t remaining = Decide(limit, state, hits, 0, latest).remaining;
  Clear(limit, state, hits, now);
  LeaveRemaining(limit, remaining, state, hits, now);
  remembered_until =
      remembered_until > latest ? now + (remembered_until - latest) : base::Instant::FromNanos(0);
}

void Change(const Limit& from, const Limit& to, BucketState& state, HitLog& hits,
            base::Instant& remembered_until, base::Instant now) {
  if (from.spec() == to.spec() || state == BucketState{}) return;
  now = std::max(now, state.seen);
  const base::Instant fresh_at = FreshAt(from, state, hits);
  remembered_until = std::max(remembered_until, fresh_at);
  if (remembered_until <= now) {
    Reset(from, state, hits);
    remembered_until = base::Instant::FromNanos(0);
    return;
  }
  const bool kept = (from.algorithm() == to.algorithm() ||
                     (IsTokenBucket(from.algorithm()) && IsTokenBucket(to.algorithm()))) &&
                    SamePeriod(from.spec(), to.spec());
  if (to.denies_all() && IsBucket(to.algorithm())) {
    Clear(from, state, hits, now);
    // A queue of 0 requests has no interval to count turns in. It is free when the previous bucket
    // would have been full (for a queue: at its free_at).
    if (to.algorithm() == Algorithm::kLeakyBucketQueue)
      state.edge = static_cast<uint64_t>(fresh_at.ns);
    return;
  }
  if (!kept || (IsTokenBucket(from.algorithm()) && from.denies_all())) {
    const uint64_t remaining = Decide(from, state, hits, 0, now).remaining;
    Clear(from, state, hits, now);
    LeaveRemaining(to, remaining, state, hits, now);
    return;
  }
  // Apply the old limit up to now first. Windows and the log then keep their state unchanged.
  switch (from.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      ChangeTokens(from, to, state, now);
      break;
    case Algorithm::kLeakyBucketQueue:
      ChangeQueue(from, to, state);
      break;
    case Algorithm::kSlidingWindowCounter:
      AdvanceWindows(from, state, now);
      break;
    case Algorithm::kFixedWindow:
    case Algorithm::kSlidingWindowLog:
      break;
  }
  state.seen = now;
}

}  // namespace headgate::algorithm
