#include "headgate/front/resp/throttle_rate.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "headgate/base/wide.h"

namespace headgate::front::resp {
namespace {

using base::uint128;

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// The bounds of algorithm::Limit.
constexpr uint64_t kRequestsMax = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kPeriodMax = (uint64_t{1} << 62) - 1;
// A shorter period would have to be rounded by more than one part in a million.
constexpr uint64_t kRoundedPeriodMin = uint64_t{1} << 20;

ThrottleRate Rate(uint64_t requests, uint128 period) {
  return {.requests = requests, .period = base::Duration(static_cast<int64_t>(period))};
}

}  // namespace

absl::StatusOr<ThrottleRate> RateOf(int64_t count, int64_t period_s, int64_t period_ns) {
  auto requests = static_cast<uint64_t>(count);
  uint128 period = uint128{static_cast<uint64_t>(period_s)} * kNsPerSecond +
                   static_cast<uint64_t>(period_ns);  // below 2^93
  if (requests <= kRequestsMax && period <= kPeriodMax) return Rate(requests, period);
  const uint64_t divisor = std::gcd(requests, static_cast<uint64_t>(period % requests));
  requests /= divisor;
  period /= divisor;
  if (requests <= kRequestsMax && period <= kPeriodMax) return Rate(requests, period);

  // The most requests that fit both bounds. kPeriodMax · requests is below 2^125.
  const auto in_period_max = static_cast<uint64_t>(std::min<uint128>(
      uint128{kPeriodMax} * requests / period, std::numeric_limits<uint64_t>::max()));
  const uint64_t rounded = std::min({requests, kRequestsMax, in_period_max});
  if (rounded == 0) {
    return absl::InvalidArgumentError(
        "burst * period / requests, the time to fill the bucket, is longer than 146 years");
  }
  const uint128 rounded_period = base::CeilDiv(period * rounded, requests);
  if (rounded_period < kRoundedPeriodMin) {
    return absl::InvalidArgumentError(
        "the rate is above 4096 requests per nanosecond and cannot be reduced to at most "
        "4294967295 requests per "
        "period");
  }
  return Rate(rounded, rounded_period);
}

}  // namespace headgate::front::resp
