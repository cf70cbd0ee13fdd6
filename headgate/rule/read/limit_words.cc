#include "headgate/rule/read/limit_words.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/base/wide.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule::read {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;

using About = LimitWordsProblem::About;
using MaybeProblem = std::optional<LimitWordsProblem>;

// Sets `algorithm`, or returns the problem.
MaybeProblem ReadAlgorithm(const LimitWords& words, Algorithm& algorithm) {
  if (!words.queue) {
    algorithm = words.algorithm.value_or(Algorithm::kTokenBucket);
    if (!words.max_delay || algorithm == Algorithm::kLeakyBucketQueue) return std::nullopt;
    return LimitWordsProblem{
        About::kMaxDelay, "max_delay is for queues only: the longest time that a request may wait"};
  }
  const Algorithm named = words.algorithm.value_or(Algorithm::kLeakyBucket);
  algorithm = Algorithm::kLeakyBucketQueue;
  if (named == Algorithm::kLeakyBucket || named == Algorithm::kLeakyBucketQueue)
    return std::nullopt;
  return LimitWordsProblem{About::kQueue,
                           fmt::format("queue belongs to leaky_bucket, not {}", Name(named))};
}

// How many requests can wait so that the last one waits for at most `delay`: floor(delay / T), T =
// period / requests.
uint64_t WaitingWithin(base::Duration delay, uint64_t requests, base::Duration period) {
  const base::uint128 count = base::WideMul(static_cast<uint64_t>(delay.count()), requests) /
                              std::max<uint64_t>(1, static_cast<uint64_t>(period.count()));
  constexpr uint64_t kMost = uint64_t{1} << 62;
  return count < kMost ? static_cast<uint64_t>(count) : kMost;
}

Align AlignOf(const LimitWords& words, Algorithm algorithm) {
  if (words.align) return *words.align;
  if (algorithm != Algorithm::kFixedWindow || !FollowsCalendar(words)) return Align::kEpoch;
  switch (*words.period.calendar) {
    case Unit::kDay:
      return Align::kCalendarDay;
    case Unit::kWeek:
      return Align::kCalendarWeek;
    case Unit::kMonth:
      return Align::kCalendarMonth;
    default:
      return Align::kCalendarYear;
  }
}

// Sets `spec`, or returns the problem if the words contradict each other.
MaybeProblem ReadSpec(const LimitWords& words, LimitSpec& spec) {
  spec = {.requests = words.requests, .period = words.period.length};
  if (words.envoy) {
    spec.algorithm = Algorithm::kFixedWindow;
    spec.count_denied = true;
    return std::nullopt;
  }
  if (MaybeProblem problem = ReadAlgorithm(words, spec.algorithm)) return problem;
  spec.burst = words.burst;
  const bool has_calendar = words.period.calendar && !words.align;
  if (words.timezone && (spec.algorithm != Algorithm::kFixedWindow || !has_calendar)) {
    return LimitWordsProblem{
        About::kTimezone,
        "a time zone is for a fixed_window whose period is day, week, month or year"};
  }
  spec.align = AlignOf(words, spec.algorithm);
  spec.zone = words.timezone.value_or(base::TimeZone());
  spec.count_denied = words.count_denied;
  spec.overdraw = words.overdraw;
  spec.block = words.block;
  if (words.max_delay) {
    const uint64_t waiting = WaitingWithin(*words.max_delay, words.requests, words.period.length);
    spec.burst = std::min(waiting, words.burst.value_or(waiting));
  }
  return std::nullopt;
}

About AboutOf(algorithm::LimitProblem::About about) {
  using Number = algorithm::LimitProblem::About;
  switch (about) {
    case Number::kPeriod:
      return About::kPeriod;
    case Number::kBurst:
      return About::kBurst;
    case Number::kAlign:
      return About::kAlign;
    case Number::kTimeZone:
      return About::kTimezone;
    case Number::kCountDenied:
      return About::kCountDenied;
    case Number::kOverdraw:
      return About::kOverdraw;
    case Number::kBlock:
      return About::kBlock;
    case Number::kRequests:
      break;
  }
  return About::kRequests;
}

}  // namespace

absl::StatusOr<Period> ParsePeriod(std::string_view text, Letters letters) {
  if (const std::optional<Unit> unit = UnitByName(text)) {
    Period period{.length = PeriodOf(*unit)};
    if (*unit == Unit::kDay || *unit == Unit::kWeek || *unit == Unit::kMonth ||
        *unit == Unit::kYear) {
      period.calendar = *unit;
    }
    return period;
  }
  if (letters == Letters::kAllowed && !text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    if (const auto one = ParseDuration(fmt::format("1{}", text)); one.ok())
      return Period{.length = *one};
  }
  const auto duration = ParseDuration(text);
  if (duration.ok()) return Period{.length = *duration};
  if (!text.empty() && base::IsDigit(text[0])) return duration.status();
  return absl::InvalidArgumentError(
      fmt::format("{} is not a period: write second, minute, hour, day, week, month, year or a "
                  "duration such as 20s",
                  Quote(text)));
}

std::string_view LengthOfUnit(const Period& period) {
  if (period.calendar == Unit::kMonth) return "a month is 30 days here";
  return period.calendar == Unit::kYear ? "a year is 365 days here" : "";
}

bool FollowsCalendar(const LimitWords& words) {
  if (!words.period.calendar) return false;
  return words.period.calendar != Unit::kDay || !words.timezone.value_or(base::TimeZone()).is_utc();
}

std::optional<LimitWordsProblem> ProblemWith(const LimitWords& words) {
  LimitSpec spec;
  if (MaybeProblem problem = ReadSpec(words, spec)) return problem;
  auto problem = algorithm::Limit::ProblemWith(spec);
  if (!problem) return std::nullopt;
  return LimitWordsProblem{AboutOf(problem->about), std::move(problem->message)};
}

absl::StatusOr<RuleLimit> MakeLimit(const LimitWords& words) {
  LimitSpec spec;
  if (const MaybeProblem problem = ReadSpec(words, spec))
    return absl::InvalidArgumentError(problem->message);
  HEADGATE_ASSIGN_OR_RETURN(algorithm::Limit limit, algorithm::Limit::Make(spec));
  return RuleLimit{.limit = limit, .unit = UnitOf(spec)};
}

}  // namespace headgate::rule::read
