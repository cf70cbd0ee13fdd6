#include "headgate/rule/limit_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "headgate/base/wide.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;

absl::StatusOr<Algorithm> AlgorithmOf(const LimitWords& words) {
  if (!words.queue) {
    if (words.max_delay && words.algorithm != Algorithm::kLeakyBucketQueue) {
      return absl::InvalidArgumentError(
          "max_delay is how long a queue may keep a request waiting, and this is no queue");
    }
    return words.algorithm.value_or(Algorithm::kTokenBucket);
  }
  const Algorithm named = words.algorithm.value_or(Algorithm::kLeakyBucket);
  if (named != Algorithm::kLeakyBucket && named != Algorithm::kLeakyBucketQueue) {
    return absl::InvalidArgumentError(fmt::format("queue belongs to leaky_bucket, not {}", Name(named)));
  }
  return Algorithm::kLeakyBucketQueue;
}

// As many as can wait without the last one waiting longer than `delay`: floor(delay / T), T = period / requests.
uint64_t WaitingWithin(base::Duration delay, uint64_t requests, base::Duration period) {
  const base::uint128 count = base::WideMul(static_cast<uint64_t>(delay.count()), requests) /
                              std::max<uint64_t>(1, static_cast<uint64_t>(period.count()));
  constexpr uint64_t kMost = uint64_t{1} << 62;
  return count < kMost ? static_cast<uint64_t>(count) : kMost;
}

Align AlignOf(const LimitWords& words, Algorithm algorithm) {
  if (words.align) return *words.align;
  if (algorithm != Algorithm::kFixedWindow || !words.period.calendar) return Align::kEpoch;
  return words.period.calendar == Unit::kMonth ? Align::kCalendarMonth : Align::kCalendarYear;
}

}  // namespace

absl::StatusOr<Period> ParsePeriod(std::string_view text, Letters letters) {
  if (const std::optional<Unit> unit = UnitByName(text)) {
    Period period{.length = PeriodOf(*unit)};
    if (*unit == Unit::kMonth || *unit == Unit::kYear) period.calendar = *unit;
    return period;
  }
  if (letters == Letters::kAllowed && !text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    if (const auto one = ParseDuration(fmt::format("1{}", text)); one.ok()) return Period{.length = *one};
  }
  const auto duration = ParseDuration(text);
  if (duration.ok()) return Period{.length = *duration};
  if (!text.empty() && text[0] >= '0' && text[0] <= '9') return duration.status();
  return absl::InvalidArgumentError(fmt::format(
      "{} is no period: write second, minute, hour, day, week, month, year or a duration such as 20s", Quote(text)));
}

absl::StatusOr<RuleLimit> MakeLimit(const LimitWords& words) {
  LimitSpec spec{.requests = words.requests, .period = words.period.length};
  if (words.envoy) {
    spec.algorithm = Algorithm::kFixedWindow;
    spec.count_denied = true;
  } else {
    HEADGATE_ASSIGN_OR_RETURN(spec.algorithm, AlgorithmOf(words));
    spec.burst = words.burst;
    spec.align = AlignOf(words, spec.algorithm);
    spec.count_denied = words.count_denied;
    if (words.max_delay) {
      const uint64_t waiting = WaitingWithin(*words.max_delay, words.requests, words.period.length);
      spec.burst = std::min(waiting, words.burst.value_or(waiting));
    }
  }
  HEADGATE_ASSIGN_OR_RETURN(algorithm::Limit limit, algorithm::Limit::Make(spec));
  return RuleLimit{.limit = limit, .unit = UnitOf(spec)};
}

std::string Describe(const algorithm::Limit& limit) {
  const LimitSpec& spec = limit.spec();
  std::string out = fmt::format("{} per ", spec.requests);
  if (spec.align == Align::kCalendarMonth) {
    out += "calendar month";
  } else if (spec.align == Align::kCalendarYear) {
    out += "calendar year";
  } else {
    out += FormatDuration(spec.period);
  }
  const bool queue = spec.algorithm == Algorithm::kLeakyBucketQueue;
  out += fmt::format(", {}", queue ? Name(Algorithm::kLeakyBucket) : Name(spec.algorithm));
  if (spec.burst) out += fmt::format(", burst {}", *spec.burst);
  if (queue) out += ", queue";
  if (spec.align == Align::kFirstHit) out += ", align first_hit";
  if (spec.count_denied) out += ", count_denied";
  return out;
}

}  // namespace headgate::rule
