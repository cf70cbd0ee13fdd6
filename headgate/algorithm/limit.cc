#include "headgate/algorithm/limit.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace headgate::algorithm {
namespace {

using base::uint128;

constexpr uint64_t kSpanMax = uint64_t{1} << 62;
constexpr uint64_t kWindowPeriodMax = uint64_t{1} << 60;
constexpr uint64_t kCountMax = std::numeric_limits<uint32_t>::max();

struct NamedAlgorithm {
  std::string_view name;
  Algorithm algorithm;
};
// The first name of an algorithm is the one that is printed.
constexpr std::array kNames{
    NamedAlgorithm{"token_bucket", Algorithm::kTokenBucket},
    NamedAlgorithm{"gcra", Algorithm::kTokenBucket},
    NamedAlgorithm{"leaky_bucket", Algorithm::kLeakyBucket},
    NamedAlgorithm{"leaky_bucket_queue", Algorithm::kLeakyBucketQueue},
    NamedAlgorithm{"fixed_window", Algorithm::kFixedWindow},
    NamedAlgorithm{"sliding_window_counter", Algorithm::kSlidingWindowCounter},
    NamedAlgorithm{"sliding_window_log", Algorithm::kSlidingWindowLog},
};

absl::Status CheckWords(const LimitSpec& spec) {
  if (spec.burst && !IsBucket(spec.algorithm)) {
    return absl::InvalidArgumentError(
        fmt::format("burst has no meaning for {}: a window's size is its requests", Name(spec.algorithm)));
  }
  if (spec.align != Align::kEpoch && spec.algorithm != Algorithm::kFixedWindow) {
    return absl::InvalidArgumentError(fmt::format(
        "only fixed_window can be aligned to its first hit or to the calendar, not {}", Name(spec.algorithm)));
  }
  if (spec.count_denied && !IsWindow(spec.algorithm)) {
    return absl::InvalidArgumentError(
        fmt::format("count_denied belongs to fixed_window and sliding_window_counter, not {}", Name(spec.algorithm)));
  }
  if (!IsCalendar(spec.align) && spec.period.count() <= 0) {
    return absl::InvalidArgumentError("the period must be longer than 0");
  }
  if (spec.burst == 0 && spec.algorithm != Algorithm::kLeakyBucketQueue) {
    return absl::InvalidArgumentError("burst must be 1 or more (0 is for a queue that holds nobody)");
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view Name(Algorithm algorithm) {
  for (const auto& [name, value] : kNames) {
    if (value == algorithm) return name;
  }
  return "unknown";
}

std::optional<Algorithm> AlgorithmByName(std::string_view name) {
  for (const auto& [known, value] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

absl::StatusOr<Limit> Limit::Make(const LimitSpec& spec) {
  HEADGATE_RETURN_IF_ERROR(CheckWords(spec));
  Limit limit;
  limit.spec_ = spec;
  limit.capacity_ = IsBucket(spec.algorithm) ? spec.burst.value_or(spec.requests) : spec.requests;
  limit.period_ = IsCalendar(spec.align) ? 1 : static_cast<uint64_t>(spec.period.count());
  limit.period_divider_ = base::Divider(limit.period_);

  uint64_t requests = spec.requests;
  if (!IsBucket(spec.algorithm)) {
    if (requests > kCountMax) {
      return absl::InvalidArgumentError(fmt::format("a window holds at most {} requests, not {}", kCountMax, requests));
    }
    if (spec.algorithm == Algorithm::kSlidingWindowLog && requests > kLogRequestsMax) {
      return absl::InvalidArgumentError(
          fmt::format("sliding_window_log keeps every hit, so at most {} requests, not {}; sliding_window_counter has "
                      "no such bound",
                      kLogRequestsMax, requests));
    }
    if (limit.period_ > kWindowPeriodMax) return absl::InvalidArgumentError("a window lasts at most 36 years");
    limit.requests_ = static_cast<uint32_t>(requests);
    return limit;
  }

  if (requests == 0) return limit;
  if (limit.period_ >= kSpanMax) return absl::InvalidArgumentError("the period is longer than 146 years");
  if (requests > kCountMax) {
    // Only a rate of more than 4 per ns or an odd one keeps its size when reduced.
    const uint64_t divisor = std::gcd(requests, limit.period_);
    requests /= divisor;
    limit.period_ /= divisor;
    limit.period_divider_ = base::Divider(limit.period_);
    if (requests > kCountMax) {
      return absl::InvalidArgumentError(
          fmt::format("at most {} requests per period, not {}", kCountMax, spec.requests));
    }
  }
  const uint128 span_numerator = uint128{limit.capacity_} * limit.period_;
  // A queue promises turns up to one interval beyond its span.
  const uint64_t beyond = spec.algorithm == Algorithm::kLeakyBucketQueue ? limit.period_ : 0;
  if (base::CeilDiv(span_numerator + beyond, requests) >= kSpanMax) {
    return absl::InvalidArgumentError(
        "burst * period / requests, the time to fill the bucket, is longer than 146 years");
  }
  limit.requests_ = static_cast<uint32_t>(requests);
  limit.interval_ = limit.period_ / requests;
  limit.interval_fraction_ = static_cast<uint32_t>(limit.period_ % requests);
  limit.span_ = static_cast<uint64_t>(span_numerator / requests);
  limit.span_fraction_ = static_cast<uint32_t>(span_numerator % requests);
  if (requests <= limit.period_) {
    const uint128 reciprocal = (uint128{requests} << 64) / limit.period_;
    limit.rate_reciprocal_ = static_cast<uint64_t>(std::min<uint128>(reciprocal, std::numeric_limits<uint64_t>::max()));
  }
  return limit;
}

}  // namespace headgate::algorithm
