#include "headgate/algorithm/counter.h"

#include <algorithm>

namespace headgate::algorithm {
namespace {

using base::Decimal;
using base::Instant;
using Kind = CounterExpiry::Kind;
using Outcome = CounterAnswer::Outcome;

// An instant is at most 2^62 ns, and so is the time of an expiry.
static_assert(base::kInstantMax.ns + std::chrono::nanoseconds(kCounterExpiryMax).count() <
              Counter::kNeverExpires.ns);

Instant NextExpiry(const CounterExpiry& expiry, Instant expires_at, Instant now) {
  const bool keeps = expiry.only_if_none && expires_at != Counter::kNeverExpires;
  switch (expiry.kind) {
    case Kind::kKeep:
      return expires_at;
    case Kind::kRemove:
      return Counter::kNeverExpires;
    case Kind::kIn:
      return keeps ? expires_at : now + expiry.time;
    case Kind::kAt:
      return keeps ? expires_at : Instant::FromNanos(0) + expiry.time;
  }
  __builtin_unreachable();
}

}  // namespace

CounterAnswer Increment(const CounterChange& change, std::optional<Counter>& counter, Instant now) {
  const Counter before =
      counter && counter->expires_at > now ? *counter : Counter{.value = Decimal::Integer(0)};
  if (change.kind == CounterChange::Kind::kInteger && !before.value.is_integer())
    return {.outcome = Outcome::kNotAnInteger};

  base::int128 wide = before.value.wide() + change.by.wide();
  const base::int128 allowed = std::clamp(wide, change.least.wide(), change.most.wide());
  if (wide != allowed && !change.saturates)
    return {.outcome = Outcome::kRefused, .value = before.value};
  wide = allowed;
  const auto value = Decimal::FromWide(wide);
  if (!value) return {.outcome = Outcome::kTooManyDigits};
  const auto applied = Decimal::FromWide(wide - before.value.wide());
  if (!applied) return {.outcome = Outcome::kAppliedOverflow};

  const Instant expires_at = NextExpiry(change.expiry, before.expires_at, now);
  counter.reset();
  if (expires_at > now) counter = Counter{.value = *value, .expires_at = expires_at};
  return {.value = *value, .applied = *applied};
}

BucketState StateOf(const Counter& counter) {
  return {.edge = static_cast<uint64_t>(counter.expires_at.ns),
          .seen = Instant::FromNanos(counter.value.units),
          .count = counter.value.scale};
}

Counter CounterOf(const BucketState& state) {
  return {.value = {.units = state.seen.ns, .scale = std::min(state.count, Decimal::kScaleMax)},
          .expires_at = Instant::FromNanos(static_cast<int64_t>(state.edge))};
}

}  // namespace headgate::algorithm
