// Token bucket, as GCRA (ITU-T I.371, "virtual scheduling"). The state is one point in time, the
// theoretical arrival time (TAT), at which the bucket would be full again.
//
//   full bucket: TAT ≤ now     a token costs T = period/requests     empty: TAT = now + burst·T
//
// T is a rational number. TAT is therefore stored as whole nanoseconds plus a fraction in units of
// 1/requests ns. Every sum is exact, so no error accumulates at any rate. A decision needs no
// division.
#pragma once

#include <algorithm>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"

namespace headgate::algorithm {

// A length of time, in ns plus a fraction in units of 1/requests ns of some limit.
struct ExactSpan {
  uint64_t ns = 0;
  uint32_t fraction = 0;
  constexpr auto operator<=>(const ExactSpan&) const = default;
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

// The decision of a limit of 0 requests: denied forever, except for a cost of 0. The bucket is left
// unchanged, so what was consumed under another limit stays consumed.
inline Decision DenyAll(const Limit& limit, Cost cost) {
  return {.allowed = cost == 0,
          .limit = limit.capacity(),
          .retry_after = cost == 0 ? base::Duration(0) : kNever};
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
  debt = std::min(debt, span);
  const ExactSpan free = Difference(span, debt, n);
  const auto whole_intervals = [&](ExactSpan s) {
    return kWhole ? WholeMultiples(limit, s.ns) : WholeIntervals(limit, s);
  };
  Decision decision{.limit = limit.capacity()};
  if (cost > limit.capacity()) [[unlikely]] {
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
