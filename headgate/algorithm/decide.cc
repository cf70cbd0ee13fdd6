#include "headgate/algorithm/decide.h"

namespace headgate::algorithm {
namespace {

void GiveBackTokens(const Limit& limit, BucketState& state, ExactSpan part, base::Instant now) {
  const ExactSpan debt = Ahead(state, now);
  SetAhead(state, now, part < debt ? Difference(debt, part, limit.requests()) : ExactSpan{});
}

void RefundTokens(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  GiveBackTokens(limit, state, PriceOfAny(limit, cost), now);
}

// The part that has refilled since the take is not missing any more.
void UndoTokens(const Limit& limit, BucketState& state, Cost cost, base::Instant taken_at,
                base::Instant now) {
  const ExactSpan price = PriceOfAny(limit, cost);
  const ExactSpan refilled{static_cast<uint64_t>((now - taken_at).count()), 0};
  const bool is_paid = refilled >= price;
  GiveBackTokens(limit, state,
                 is_paid ? ExactSpan{} : Difference(price, refilled, limit.requests()), now);
}

// This includes a queue: charged requests wait for their turns before the next request.
void ChargeTokens(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  if (cost == 0) return;
  const ExactSpan debt = Sum(Ahead(state, now), PriceOfAny(limit, cost), limit.requests());
  SetAhead(state, now, std::min(debt, kOwedMost));
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
  const ExactSpan debt = Ahead(state, now);
  const base::uint128 consumed =
      (base::WideMul(debt.ns, from.requests()) + debt.fraction) * (period / from.period());
  const base::uint128 full_before = base::WideMul(from.capacity(), period);
  const base::uint128 full = base::WideMul(to.capacity(), period);
  // The new bucket lacks full − (full_before − consumed), not below 0.
  const base::uint128 unscaled = full + consumed;
  const base::uint128 missing =
      base::CeilDiv(unscaled > full_before ? unscaled - full_before : 0, period / to.period());
  const base::uint128 ns = missing / to.requests();
  if (ns >= kOwedMost.ns) return SetAhead(state, now, kOwedMost);
  SetAhead(state, now, {static_cast<uint64_t>(ns), static_cast<uint32_t>(missing % to.requests())});
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
  if (KeepsHits(limit.algorithm())) {
    while (!hits.empty()) hits.DropOldest();
  }
  state = BucketState{.seen = now};
}

// Turns a cleared bucket into a bucket of `limit` with `remaining` requests left.
void LeaveRemaining(const Limit& limit, uint64_t remaining, BucketState& state, HitLog& hits,
                    base::Instant now) {
  if (limit.denies_all()) return;
  if (IsQueue(limit.algorithm())) {
    // If remaining is burst + 1, the queue is empty.
    if (remaining <= limit.capacity())
      SetAhead(state, now, Price(limit, limit.capacity() + 1 - remaining));
    return;
  }
  const uint64_t used = remaining < limit.capacity() ? limit.capacity() - remaining : 0;
  if (used > 0) DecideUnblocked(limit, state, hits, used, now);
}

// During a block a request takes nothing. It can pass when the block is over and the algorithm
// alone would allow it.
Decision DecideBlocked(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                       base::Instant now) {
  Decision decision = DecideUnblocked(limit, state, hits, 0, now);
  const base::Duration left = state.block.until - now;
  if (cost > 0) {
    BucketState copy = state;
    const Decision alone = DecideUnblocked(limit, copy, hits, cost, now);
    // `hits` is not a copy: take the hit of this trial out again.
    if (alone.allowed && KeepsHits(limit.algorithm()))
      hits.ReduceNewest(static_cast<uint32_t>(cost));
    decision.allowed = false;
    decision.retry_after = std::max(left, alone.retry_after);
  }
  decision.remaining = 0;
  decision.reset_after = std::max(left, decision.reset_after);
  decision.blocked_for = left;
  return decision;
}

bool SamePeriod(const LimitSpec& a, const LimitSpec& b) {
  return a.align == b.align && a.zone == b.zone && (IsCalendar(a.align) || a.period == b.period);
}

// Without blocks.
void ChangeUnblocked(const Limit& from, const Limit& to, BucketState& state, HitLog& hits,
                     RememberedUntil& remembered_until, base::Instant now) {
  const base::Instant fresh_at = FreshAt(from, state, hits);
  const bool remembers = remembered_until > now;
  const bool hid_use = remembers && remembered_until.hides_use;
  remembered_until.ns = std::max(remembered_until.ns, fresh_at.ns);
  if (remembered_until <= now) {
    Reset(from, state, hits);
    remembered_until = {};
    return;
  }
  const bool mints = hid_use && !IsBucket(to.algorithm()) && to.capacity() > from.capacity();
  const bool kept = (from.algorithm() == to.algorithm() ||
                     (IsTokenBucket(from.algorithm()) && IsTokenBucket(to.algorithm()))) &&
                    SamePeriod(from.spec(), to.spec()) && !mints;
  remembered_until.hides_use = hid_use || (!kept && (remembers || to.capacity() < from.capacity()));
  if (to.denies_all() && IsBucket(to.algorithm())) {
    Clear(from, state, hits, now);
    // A queue of 0 requests has no interval to count turns in. It is free when the previous bucket
    // would have been full (for a queue: at its free_at).
    if (IsQueue(to.algorithm())) state.edge = static_cast<uint64_t>(fresh_at.ns);
    return;
  }
  if (!kept || (IsTokenBucket(from.algorithm()) && from.denies_all())) {
    const uint64_t remaining = DecideUnblocked(from, state, hits, 0, now).remaining;
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

}  // namespace

Decision DecideBlocking(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                        base::Instant now) {
  if (limit.denies_all()) return DenyAll(limit, cost);
  now = std::max(now, state.seen);
  Block& block = state.block;
  if (block.IsInForce(now)) return DecideBlocked(limit, state, hits, cost, now);
  Decision decision = DecideUnblocked(limit, state, hits, cost, now);
  if (cost == 0) return decision;
  if (decision.allowed) {
    block.used = block.exists();
    return decision;
  }
  // Two kinds of denial begin no block: a request that can never fit is a mistake, and a log
  // without room for another hit is not the client's fault. After a block, denials belong to the
  // same violation until a request takes something.
  if (decision.never_fits() || cost <= decision.remaining || (block.exists() && !block.used))
    return decision;
  block = NextBlock(limit.spec().block, block, now);
  decision.blocked_for = block.until - now;
  decision.remaining = 0;
  decision.retry_after = std::max(decision.retry_after, decision.blocked_for);
  decision.reset_after = std::max(decision.reset_after, decision.blocked_for);
  return decision;
}

Decision Peek(const Limit& limit, BucketState& state, HitLog& hits, Cost cost, base::Instant now) {
  return !limit.denies_all() && state.block.IsInForce(std::max(now, state.seen))
             ? DecideBlocked(limit, state, hits, cost, std::max(now, state.seen))
             : DecideUnblocked(limit, state, hits, cost, now);
}

base::Instant MattersUntil(const Limit& limit, const BucketState& state) {
  return MattersUntil(limit.spec().block, state.block);
}

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
    state.seen = now;
  }
  return Decide(limit, state, hits, 0, now);
}

Decision Charge(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                base::Instant now) {
  now = std::max(now, state.seen);
  if (!limit.denies_all()) {
    if (cost > 0 && state.block.exists() && !state.block.IsInForce(now)) state.block.used = true;
    switch (limit.algorithm()) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
      case Algorithm::kLeakyBucketQueue:
        ChargeTokens(limit, state, cost, now);
        break;
      case Algorithm::kFixedWindow:
        ChargeFixedWindow(limit, state, cost, now);
        break;
      case Algorithm::kSlidingWindowCounter:
        ChargeSlidingWindowCounter(limit, state, cost, now);
        break;
      case Algorithm::kSlidingWindowLog:
        ChargeSlidingWindowLog(limit, state, hits, cost, now);
        break;
    }
    state.seen = now;
  }
  return Decide(limit, state, hits, 0, now);
}

absl::StatusOr<Decision> Undo(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                              base::Instant taken_at, base::Instant now) {
  if (!TakesRefunds(limit.algorithm())) return RefundRefused();
  now = std::max(now, state.seen);
  taken_at = std::min(taken_at, now);
  if (!limit.denies_all()) {
    switch (limit.algorithm()) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
        UndoTokens(limit, state, cost, taken_at, now);
        break;
      case Algorithm::kFixedWindow:
        UndoFixedWindow(limit, state, cost, taken_at, now);
        break;
      case Algorithm::kSlidingWindowCounter:
        UndoSlidingWindowCounter(limit, state, cost, taken_at, now);
        break;
      case Algorithm::kSlidingWindowLog:
        UndoSlidingWindowLog(limit, state, hits, cost, taken_at, now);
        break;
      case Algorithm::kLeakyBucketQueue:
        break;
    }
    state.seen = now;
  }
  return Decide(limit, state, hits, 0, now);
}

void Reset(const Limit& limit, BucketState& state, HitLog& hits) {
  Clear(limit, state, hits, base::Instant::FromNanos(0));
}

base::Duration TimeToFull(const Limit& limit) {
  if (limit.denies_all()) return base::Duration(0);
  if (IsCalendar(limit.spec().align)) return LongestCalendarPeriod(limit.spec());
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

void Rebase(const Limit& limit, BucketState& state, HitLog& hits, RememberedUntil& remembered_until,
            base::Instant now) {
  const base::Instant latest = state.seen;
  const Block block = SetBack(state.block, latest - now);
  const uint64_t remaining = DecideUnblocked(limit, state, hits, 0, latest).remaining;
  Clear(limit, state, hits, now);
  LeaveRemaining(limit, remaining, state, hits, now);
  state.block = block;
  if (remembered_until > latest) {
    remembered_until.ns = (now + (remembered_until - latest)).ns;
  } else {
    remembered_until = {};
  }
}

void Change(const Limit& from, const Limit& to, BucketState& state, HitLog& hits,
            RememberedUntil& remembered_until, base::Instant now) {
  if (from.spec() == to.spec() || state == BucketState{}) return;
  now = std::max(now, state.seen);
  const Block block =
      MattersUntil(from, state) > now ? CarriedOver(to.spec().block, state.block, now) : Block{};
  ChangeUnblocked(from, to, state, hits, remembered_until, now);
  state.block = block;
  if (block.exists()) state.seen = now;
}

}  // namespace headgate::algorithm
