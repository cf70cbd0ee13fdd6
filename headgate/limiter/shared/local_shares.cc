#include "headgate/limiter/shared/local_shares.h"

#include <algorithm>
#include <numeric>

#include "headgate/base/wide.h"

namespace headgate::limiter::shared {

using algorithm::LimitSpec;

namespace {

uint64_t RoundedDown(uint64_t whole, Fraction fraction) {
  return std::max<uint64_t>(
      1, static_cast<uint64_t>(base::WideMul(whole, fraction.numerator) / fraction.denominator));
}

// Returns nothing for numbers that Limit::Make refuses.
uint64_t Times(uint64_t number, uint64_t times) {
  return static_cast<uint64_t>(std::min<base::uint128>(base::WideMul(number, times), INT64_MAX));
}

base::Duration Longer(base::Duration period, uint64_t times) {
  return base::Duration(static_cast<int64_t>(Times(static_cast<uint64_t>(period.count()), times)));
}

LimitSpec ExactRate(const LimitSpec& whole, Fraction fraction) {
  const uint32_t divisor = std::gcd(fraction.numerator, fraction.denominator);
  LimitSpec part = whole;
  part.requests = Times(whole.requests, fraction.numerator / divisor);
  part.period = Longer(whole.period, fraction.denominator / divisor);
  const uint64_t burst = whole.burst.value_or(whole.requests);
  part.burst = burst == 0 ? 0 : RoundedDown(burst, fraction);
  return part;
}

LimitSpec FewerPerPeriod(const LimitSpec& whole, Fraction fraction) {
  LimitSpec part = whole;
  part.requests = RoundedDown(whole.requests, fraction);
  if (whole.burst.value_or(0) > 0) part.burst = RoundedDown(*whole.burst, fraction);
  return part;
}

// One request per several windows, so that all parts together do not exceed the whole.
LimitSpec OneInALongerWindow(const LimitSpec& whole, Fraction fraction) {
  LimitSpec part = whole;
  part.requests = 1;
  const uint64_t requests = whole.requests * fraction.numerator;
  part.period = Longer(whole.period, (fraction.denominator + requests - 1) / requests);
  return part;
}

}  // namespace

LimitSpec PartOf(const LimitSpec& all, Fraction fraction) {
  // A client that an outage denies has done nothing wrong.
  LimitSpec whole = all;
  whole.block = {};
  if (whole.requests == 0 || fraction.numerator == fraction.denominator) return whole;
  const bool less_than_one =
      base::WideMul(whole.requests, fraction.numerator) < fraction.denominator;
  LimitSpec part;
  if (IsBucket(whole.algorithm)) {
    part = ExactRate(whole, fraction);
  } else if (less_than_one && !IsCalendar(whole.align)) {
    part = OneInALongerWindow(whole, fraction);
  } else {
    part = FewerPerPeriod(whole, fraction);
  }
  // Limit::Make refuses the exact numbers, so they are rounded: a slightly wrong part is better
  // than the whole.
  for (const LimitSpec& spec : {part, FewerPerPeriod(whole, fraction)}) {
    if (algorithm::Limit::Make(spec).ok()) return spec;
  }
  return whole;
}

store::LimitHandle LocalShares::Of(const store::LimitHandle& whole, Fraction fraction) {
  if (fraction.numerator == fraction.denominator && !whole->limit.blocks()) return whole;
  const auto found = parts_.find(whole->id);
  if (found != parts_.end() && found->second.fraction.numerator == fraction.numerator &&
      found->second.fraction.denominator == fraction.denominator) {
    return found->second.part;
  }
  auto part = limits_.Intern(*algorithm::Limit::Make(PartOf(whole->limit.spec(), fraction)), 0,
                             whole->owner->owner);
  if (!part.ok()) return whole;
  if (parts_.size() >= kPartsMax) parts_.clear();
  parts_.insert_or_assign(whole->id, Part{.whole = whole, .fraction = fraction, .part = *part});
  return *std::move(part);
}

}  // namespace headgate::limiter::shared
