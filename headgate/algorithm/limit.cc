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

using About = LimitProblem::About;
using Problem = std::optional<LimitProblem>;

Problem CheckWords(const LimitSpec& spec) {
  if (spec.burst && !IsBucket(spec.algorithm)) {
    return LimitProblem{About::kBurst,
                        fmt::format("burst has no meaning for {}: a window's size is its requests",
                                    Name(spec.algorithm))};
  }
  if (spec.align != Align::kEpoch && spec.algorithm != Algorithm::kFixedWindow) {
    return LimitProblem{
        About::kAlign,
        fmt::format("only fixed_window can be aligned to its first hit or to the calendar, not {}",
                    Name(spec.algorithm))};
  }
  if (!spec.zone.is_utc() && !IsCalendar(spec.align)) {
    return LimitProblem{About::kTimeZone,
                        "a time zone is for a fixed window of a calendar day, week, month or year"};
  }
  if (spec.count_denied && !IsWindow(spec.algorithm)) {
    return LimitProblem{
        About::kCountDenied,
        fmt::format("count_denied belongs to fixed_window and sliding_window_counter, not {}",
                    Name(spec.algorithm))};
  }
  if (spec.overdraw && IsQueue(spec.algorithm)) {
    return LimitProblem{About::kOverdraw,
                        "a queue cannot be overdrawn: each request waits for its turn"};
  }
  if (!spec.block.empty() && (spec.count_denied || spec.overdraw)) {
    return LimitProblem{
        About::kBlock,
        fmt::format("block and {} contradict each other: {}",
                    spec.count_denied ? "count_denied" : "overdraw",
                    spec.count_denied ? "requests during a block are not counted"
                                      : "an overdrawn bucket denies until time has paid for it")};
  }
  if (!IsCalendar(spec.align) && spec.period.count() <= 0) {
    return LimitProblem{About::kPeriod, "the period must be longer than 0"};
  }
  if (spec.burst == 0 && !IsQueue(spec.algorithm)) {
    return LimitProblem{About::kBurst,
                        "burst must be 1 or more (0 is for a queue that holds nobody)"};
  }
  return std::nullopt;
}

}  // namespace

base::Duration ShortestCalendarPeriod(const LimitSpec& spec) {
  // A change of clocks shortens a day by an hour or two; once, one shortened a week by a day.
  const bool changes = spec.zone.changes().size() > 1;
  if (spec.align == Align::kCalendarDay) return std::chrono::hours(changes ? 21 : 24);
  const int days = spec.align == Align::kCalendarYear   ? 365
                   : spec.align == Align::kCalendarWeek ? 7
                                                        : 28;
  return std::chrono::days(days) - std::chrono::hours(changes ? 27 : 0);
}

base::Duration LongestCalendarPeriod(const LimitSpec& spec) {
  const int days = spec.align == Align::kCalendarYear    ? 366
                   : spec.align == Align::kCalendarMonth ? 31
                   : spec.align == Align::kCalendarWeek  ? 7
                                                         : 1;
  return std::chrono::days(days) + std::chrono::hours(spec.zone.changes().size() > 1 ? 27 : 0);
}

absl::StatusOr<Limit> Limit::Make(const LimitSpec& spec) {
  Limit limit;
  if (const Problem problem = limit.Set(spec)) return absl::InvalidArgumentError(problem->message);
  return limit;
}

Problem Limit::ProblemWith(const LimitSpec& spec) { return Limit().Set(spec); }

Problem Limit::Set(const LimitSpec& spec) {
  if (Problem problem = CheckWords(spec)) return problem;
  spec_ = spec;
  period_ = IsCalendar(spec.align) ? 1 : static_cast<uint64_t>(spec.period.count());
  period_divider_ = base::Divider(period_);
  return IsBucket(spec.algorithm) ? SetBucket(spec) : SetWindow(spec);
}

Problem Limit::SetWindow(const LimitSpec& spec) {
  capacity_ = spec.requests;
  if (spec.requests > kCountMax) {
    return LimitProblem{About::kRequests, fmt::format("a window holds at most {} requests, not {}",
                                                      kCountMax, spec.requests)};
  }
  if (KeepsHits(spec.algorithm) && spec.requests > kLogRequestsMax) {
    return LimitProblem{
        About::kRequests,
        fmt::format("sliding_window_log keeps every hit, so at most {} requests, not {}; "
                    "sliding_window_counter has no such bound",
                    kLogRequestsMax, spec.requests)};
  }
  if (period_ > kWindowPeriodMax)
    return LimitProblem{About::kPeriod, "a window lasts at most 36 years"};
  requests_ = static_cast<uint32_t>(spec.requests);
  return std::nullopt;
}

Problem Limit::SetBucket(const LimitSpec& spec) {
  capacity_ = spec.burst.value_or(spec.requests);
  uint64_t requests = spec.requests;
  if (requests == 0) return std::nullopt;
  if (period_ >= kSpanMax)
    return LimitProblem{About::kPeriod, "the period is longer than 146 years"};
  if (requests > kCountMax) {
    // Reduce only if the rate is more than 4 per ns or does not divide evenly.
    const uint64_t divisor = std::gcd(requests, period_);
    requests /= divisor;
    period_ /= divisor;
    period_divider_ = base::Divider(period_);
    if (requests > kCountMax) {
      return LimitProblem{About::kRequests, fmt::format("at most {} requests per period, not {}",
                                                        kCountMax, spec.requests)};
    }
  }
  const uint128 span_numerator = uint128{capacity_} * period_;
  // The last turn of a queue is up to one interval beyond its span.
  const uint64_t beyond = IsQueue(spec.algorithm) ? period_ : 0;
  if (base::CeilDiv(span_numerator + beyond, requests) >= kSpanMax) {
    return LimitProblem{
        About::kBurst,
        "burst * period / requests, the time to fill the bucket, is longer than 146 years"};
  }
  requests_ = static_cast<uint32_t>(requests);
  interval_ = period_ / requests;
  interval_fraction_ = static_cast<uint32_t>(period_ % requests);
  span_ = static_cast<uint64_t>(span_numerator / requests);
  span_fraction_ = static_cast<uint32_t>(span_numerator % requests);
  if (requests <= period_) {
    const uint128 reciprocal = (uint128{requests} << 64) / period_;
    rate_reciprocal_ =
        static_cast<uint64_t>(std::min<uint128>(reciprocal, std::numeric_limits<uint64_t>::max()));
  }
  return std::nullopt;
}

}  // namespace headgate::algorithm
