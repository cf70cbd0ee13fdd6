// Token bucket, as GCRA (ITU-T I.371, "virtual scheduling"). The state is one point in time, the
// theoretical arrival time (TAT), at which the bucket would be full again.
//
//   full bucket: TAT ≤ now     a token costs T = period/requests     empty: TAT = now + burst·T
//   overdrawn: TAT > now + burst·T
//
// T is a rational number. TAT is therefore stored as whole nanoseconds plus a fraction in units of
// 1/requests ns. Every sum is exact, so no error accumulates at any rate. A decision needs no
// division.
#pragma once

#include <algorithm>
#include <optional>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// A length of time, in ns plus a fraction in units of 1/requests ns of some limit.
struct ExactSpan {
  uint64_t ns = 0;
  uint32_t fraction = 0;
  // Inlined in every decision: a call would make MemoryStore::TakeOne set up a stack frame before
  // it takes the lock.
  [[gnu::always_inline]] constexpr auto operator<=>(const ExactSpan&) const = default;
};

// Helpers for both bucket algorithms. `n` is the limit's requests.
inline ExactSpan Sum(ExactSpan a, ExactSpan b, uint32_t n) {
  const uint64_t fraction = uint64_t{a.fraction} + b.fraction;
  const bool carry = fraction >= n;
  return {a.ns + b.ns + (carry ? 1 : 0), static_cast<uint32_t>(carry ? fraction - n : fraction)};
}

// Returns a − b; requires a ≥ b.
inline ExactSpan Difference(ExactSpan a, ExactSpan b, uint32_t n) {
  const bool borrow = a.fraction < b.fraction;
  return {a.ns - b.ns - (borrow ? 1 : 0),
          static_cast<uint32_t>(uint64_t{a.fraction} + (borrow ? n : 0u) - b.fraction)};
}

inline ExactSpan SpanOf(const Limit& limit) { return {limit.span(), limit.span_fraction()}; }
inline ExactSpan IntervalOf(const Limit& limit) {
  return {limit.interval(), limit.interval_fraction()};
}

// Returns cost·T. Requires cost ≤ capacity + 1 and a limit that does not deny all.
inline ExactSpan Price(const Limit& limit, Cost cost) {
  if (cost == 1) return IntervalOf(limit);
  if (limit.interval_fraction() == 0) return {cost * limit.interval(), 0};
  const base::uint128 fractions = base::WideMul(cost, limit.interval_fraction());
  return {cost * limit.interval() + static_cast<uint64_t>(fractions / limit.requests()),
          static_cast<uint32_t>(fractions % limit.requests())};
}

// The longest time that a bucket owes. Charges beyond it are lost: it takes 146 years to pay.
inline constexpr ExactSpan kOwedMost{static_cast<uint64_t>(base::kDurationMax.count()), 0};

// As Price, for every cost; at most kOwedMost.
inline ExactSpan PriceOfAny(const Limit& limit, Cost cost) {
  if (cost <= limit.capacity()) return Price(limit, cost);
  const base::uint128 fractions = base::WideMul(cost, limit.interval_fraction());
  const base::uint128 ns = base::WideMul(cost, limit.interval()) + fractions / limit.requests();
  if (ns >= kOwedMost.ns) return kOwedMost;
  return {static_cast<uint64_t>(ns), static_cast<uint32_t>(fractions % limit.requests())};
}

inline base::Duration RoundUp(ExactSpan span) {
  return base::Duration(static_cast<int64_t>(span.ns + (span.fraction != 0 ? 1 : 0)));
}

// The number of whole intervals in `span`: floor(span·N/P).
inline uint64_t WholeIntervals(const Limit& limit, ExactSpan span) {
  const base::uint128 numerator = base::WideMul(span.ns, limit.requests()) + span.fraction;
  if (limit.rate_reciprocal() == 0) return static_cast<uint64_t>(numerator / limit.period());
  // The estimate is too small by at most 2, because the reciprocal is too small by less than 1 in
  // 2^64, span.ns < 2^62, and the fraction is < 1.
  uint64_t whole = base::MulHigh(span.ns, limit.rate_reciprocal());
  while (base::WideMul(whole + 1, limit.period()) <= numerator) ++whole;
  return whole;
}

// Like WholeIntervals if T is a whole number of nanoseconds: floor(ns/T). The estimate is at most
// one too small.
inline uint64_t WholeMultiples(const Limit& limit, uint64_t ns) {
  const uint64_t estimate = base::MulHigh(ns, limit.rate_reciprocal());
  return estimate + (ns - estimate * limit.interval() >= limit.interval() ? 1 : 0);
}

// How far the bucket's edge (TAT or free_at) is ahead of `now`; zero if it has passed.
inline ExactSpan Ahead(const BucketState& state, base::Instant now) {
  const auto now_ns = static_cast<uint64_t>(now.ns);
  if (state.edge < now_ns) return {};
  return {state.edge - now_ns, state.count};
}

inline void SetAhead(BucketState& state, base::Instant now, ExactSpan ahead) {
  state.edge = static_cast<uint64_t>(now.ns) + ahead.ns;
  state.count = ahead.fraction;
}

// The decision of a limit of 0 requests, whatever its burst: denied forever, except for a cost of
// 0. The bucket is left unchanged, so requests that were consumed under another limit stay
// consumed.
inline Decision DenyAll(const Limit& limit, Cost cost) {
  return {.allowed = cost == 0,
          .limit = limit.denies_all() ? 0 : limit.capacity(),
          .retry_after = cost == 0 ? base::Duration(0) : kNever};
}

// How long after a decision more than `remaining` is available: until the next token of a token
// bucket or meter, until a queue or a fixed window is full again, until the block of a blocked key
// ends. Absent if that is not known, as for a sliding window with leases.
inline std::optional<base::Duration> MoreAfter(const Limit& limit, const Decision& decision) {
  if (decision.blocked()) return decision.blocked_for;
  if (limit.algorithm() == Algorithm::kSlidingWindowCounter ||
      limit.algorithm() == Algorithm::kSlidingWindowLog) {
    if (decision.more_after > base::Duration(0)) return decision.more_after;
    return decision.reset_after == base::Duration(0) ? std::optional(base::Duration(0))
                                                     : std::nullopt;
  }
  const uint64_t used = decision.limit - std::min(decision.limit, decision.remaining);
  if (!IsTokenBucket(limit.algorithm()) || limit.denies_all() || decision.overdrawn || used == 0 ||
      decision.limit > limit.capacity()) {
    return decision.reset_after;
  }
  const auto others = base::Duration(static_cast<int64_t>(Price(limit, used - 1).ns));
  return std::max(std::min(base::Duration(1), decision.reset_after), decision.reset_after - others);
}

// Requires debt > SpanOf(limit).
[[gnu::noinline, gnu::cold]] inline Decision DecideOverdrawn(const Limit& limit, ExactSpan debt,
                                                             Cost cost) {
  Decision decision{.allowed = cost == 0,
                    .limit = limit.capacity(),
                    .reset_after = RoundUp(debt),
                    .overdrawn = true};
  if (limit.spec().overdraw && cost > 0) {
    decision.retry_after = RoundUp(Difference(debt, SpanOf(limit), limit.requests()));
  } else if (cost > limit.capacity()) {
    decision.retry_after = kNever;
  } else if (cost > 0) {
    const ExactSpan needed = Sum(debt, Price(limit, cost), limit.requests());
    decision.retry_after = RoundUp(Difference(needed, SpanOf(limit), limit.requests()));
  }
  return decision;
}

// A request that does not fit. Requires debt ≤ SpanOf(limit).
[[gnu::noinline, gnu::cold]] inline Decision Overdraw(const Limit& limit, BucketState& state,
                                                      ExactSpan debt, Cost cost,
                                                      base::Instant now) {
  const ExactSpan after = std::min(kOwedMost, Sum(debt, PriceOfAny(limit, cost), limit.requests()));
  SetAhead(state, now, after);
  return {
      .limit = limit.capacity(), .reset_after = RoundUp(after), .overdrawn = after > SpanOf(limit)};
}

// With kWhole, both T and TAT are whole numbers of nanoseconds, the most common case, and all
// fractions drop out. (TAT can have a fraction under a whole T if the bucket was carried over from
// another limit.)
template <bool kWhole>
[[gnu::always_inline]] inline Decision DecideTokens(const Limit& limit, BucketState& state,
                                                    Cost cost, base::Instant now) {
  const uint32_t n = kWhole ? 1 : limit.requests();
  const ExactSpan span{limit.span(), kWhole ? 0 : limit.span_fraction()};
  ExactSpan debt = Ahead(state, now);
  if (kWhole) debt.fraction = 0;
  if (debt > span) [[unlikely]]
    return DecideOverdrawn(limit, debt, cost);
  const ExactSpan free = Difference(span, debt, n);
  const auto whole_intervals = [&](ExactSpan s) {
    return kWhole ? WholeMultiples(limit, s.ns) : WholeIntervals(limit, s);
  };
  Decision decision{.limit = limit.capacity()};
  if (cost > limit.capacity()) [[unlikely]] {
    if (limit.spec().overdraw) return Overdraw(limit, state, debt, cost, now);
    decision.allowed = false;
    decision.retry_after = kNever;
  } else if (const ExactSpan price =
                 kWhole ? ExactSpan{cost * limit.interval()} : Price(limit, cost);
             price <= free) {
    const ExactSpan debt_after = Sum(debt, price, n);
    if (cost != 0) SetAhead(state, now, debt_after);
    decision.remaining = whole_intervals(Difference(free, price, n));
    decision.reset_after = RoundUp(debt_after);
    return decision;
  } else {
    if (limit.spec().overdraw) [[unlikely]]
      return Overdraw(limit, state, debt, cost, now);
    decision.allowed = false;
    decision.retry_after = RoundUp(Difference(price, free, n));
  }
  decision.remaining = whole_intervals(free);
  decision.reset_after = RoundUp(debt);
  return decision;
}

inline bool InWholeNanoseconds(const Limit& limit, const BucketState& state) {
  return (limit.interval_fraction() | state.count) == 0;
}

// Requires InWholeNanoseconds, and a limit that does not deny all.
[[gnu::always_inline]] inline Decision DecideInWholeNanoseconds(const Limit& limit,
                                                                BucketState& state, Cost cost,
                                                                base::Instant now) {
  state.seen = std::max(now, state.seen);
  return DecideTokens<true>(limit, state, cost, state.seen);
}

[[gnu::always_inline]] inline Decision DecideTokenBucket(const Limit& limit, BucketState& state,
                                                         Cost cost, base::Instant now) {
  if (limit.denies_all()) [[unlikely]]
    return DenyAll(limit, cost);
  if (InWholeNanoseconds(limit, state)) [[likely]]
    return DecideInWholeNanoseconds(limit, state, cost, now);
  state.seen = std::max(now, state.seen);
  return DecideTokens<false>(limit, state, cost, state.seen);
}

}  // namespace headgate::algorithm
