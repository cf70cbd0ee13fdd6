#include "headgate/answer/tightest.h"

#include <algorithm>
#include <array>

#include "headgate/algorithm/token_bucket.h"

namespace headgate::answer {
namespace {

using limiter::DescriptorAnswer;

// The policy name of an override, whose limit comes with the request and not from a rule.
constexpr std::string_view kOverridePolicy = "request";

bool IsQuota(const DescriptorAnswer& outcome) {
  return outcome.rule != nullptr && outcome.rule->quota_mode;
}

// Whether the limit can deny, that is, is not in shadow mode.
bool IsEnforced(const DescriptorAnswer& outcome) {
  return outcome.has_decision() && (outcome.rule == nullptr || !outcome.rule->shadow_mode);
}

bool Tighter(const DescriptorAnswer& a, const DescriptorAnswer& b) {
  if (a.allowed() != b.allowed()) return !a.allowed();
  if (!a.allowed()) return a.decision.retry_after > b.decision.retry_after;
  return a.decision.remaining < b.decision.remaining;
}

// The limit of the answer as its rule file states it; null if the request brought it.
const rule::RuleLimit* LimitOf(const DescriptorAnswer& answer) {
  if (answer.rule == nullptr || answer.of_permits) return nullptr;
  const auto in = [&](const std::vector<rule::RuleLimit>& limits) {
    return answer.limit_index < limits.size() &&
           limits[answer.limit_index].limit.spec() == answer.limit->spec();
  };
  const rule::Rollout* const rollout = answer.rule->rollout.get();
  if (rollout != nullptr && !in(answer.rule->limits) && in(rollout->limits))
    return &rollout->limits[answer.limit_index];
  // If the request gave a plan or a number, `limit` differs from the limit in the file.
  return answer.limit_index < answer.rule->limits.size() ? &answer.rule->limits[answer.limit_index]
                                                         : nullptr;
}

// Tells the limits of one rule apart; empty if it has only one.
std::string_view PartOf(const DescriptorAnswer& answer) {
  static constexpr std::array<std::string_view, rule::kLimitsPerRuleMax> kParts = {
      "#1", "#2",  "#3",  "#4",  "#5",  "#6",  "#7",  "#8",
      "#9", "#10", "#11", "#12", "#13", "#14", "#15", "#16"};
  if (answer.rule == nullptr) return "";
  if (answer.of_permits) return answer.rule->limits.empty() ? "" : "#concurrency";
  const rule::Rollout* const rollout = answer.rule->rollout.get();
  const bool has_several =
      answer.rule->limits.size() > 1 || (rollout != nullptr && rollout->limits.size() > 1);
  return has_several && answer.limit_index < kParts.size() ? kParts[answer.limit_index] : "";
}

void SetUnit(const DescriptorAnswer& answer, wire::RateLimitState& state) {
  if (answer.of_permits) {
    state.unit = base::QuotaUnit::kConcurrentRequests;
  } else if (const rule::RuleLimit* const limit = LimitOf(answer);
             limit != nullptr && limit->cost && limit->cost->counts_bytes()) {
    state.unit = base::QuotaUnit::kContentBytes;
    state.unit_size = limit->cost->per_bytes;
  } else if (answer.rule != nullptr) {
    state.unit = answer.rule->quota_unit;
  }
}

}  // namespace

std::optional<base::Duration> RetryAfter(const limiter::Response& response) {
  base::Duration all{0};
  base::Duration quota = algorithm::kNever;
  bool quota_denies = false;
  for (const DescriptorAnswer& outcome : response.descriptors) {
    if (outcome.allowed()) continue;
    if (IsQuota(outcome)) {
      quota_denies = true;
      quota = std::min(quota, outcome.decision.retry_after);
    } else {
      all = std::max(all, outcome.decision.retry_after);
    }
  }
  const bool quota_alone_allows =
      std::any_of(response.descriptors.begin(), response.descriptors.end(),
                  [](const DescriptorAnswer& o) { return IsQuota(o) && o.allowed(); });
  if (quota_denies && !quota_alone_allows) all = std::max(all, quota);
  if (all == algorithm::kNever) return std::nullopt;
  return all;
}

std::optional<size_t> TightestDescriptor(const limiter::Response& response) {
  const std::vector<DescriptorAnswer>& answers = response.descriptors;
  std::optional<size_t> tightest;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (IsEnforced(answers[i]) && (!tightest || Tighter(answers[i], answers[*tightest])))
      tightest = i;
  }
  return tightest;
}

std::shared_ptr<const rule::Refusal> RefusalOf(const limiter::Response& response) {
  const std::optional<size_t> position = TightestDescriptor(response);
  const rule::Rule* const rule = position ? response.descriptors[*position].rule : nullptr;
  return rule == nullptr ? nullptr : rule->refusal;
}

namespace {

// Nobody knows when a permit comes back; its ttl is only the latest time. So the reset is the
// estimate of Retry-After, or else one second, the least that a field of whole seconds can state.
base::Duration ResetAfter(const DescriptorAnswer& answer) {
  const algorithm::Decision& decision = answer.decision;
  if (!answer.of_permits) return decision.reset_after;
  if (!decision.allowed && !decision.never_fits()) return decision.retry_after;
  return decision.remaining < decision.limit ? std::chrono::seconds(1) : base::Duration(0);
}

}  // namespace

std::optional<wire::RateLimitState> Tightest(const limiter::Response& response) {
  const std::optional<size_t> position = TightestDescriptor(response);
  if (!position) return std::nullopt;
  const DescriptorAnswer* const tightest = &response.descriptors[*position];

  const algorithm::LimitSpec& spec = tightest->limit->spec();
  // The weeks of UTC.
  const bool is_week = spec.align == algorithm::Align::kCalendarWeek && spec.zone.is_utc();
  const bool has_no_window = tightest->of_permits || (IsCalendar(spec.align) && !is_week);
  wire::RateLimitState state{
      .policy = tightest->rule != nullptr ? tightest->rule->label() : kOverridePolicy,
      .quota = spec.requests,
      // Months and years differ in length, and so do days where clocks change. A limit of requests
      // in flight has no window.
      .window = has_no_window ? base::Duration(0)
                : is_week     ? algorithm::ShortestCalendarPeriod(spec)
                              : spec.period,
      .limit = tightest->decision.limit,
      .remaining = tightest->decision.remaining,
      .reset_after = ResetAfter(*tightest),
      .more_after = tightest->of_permits
                        ? std::nullopt
                        : algorithm::MoreAfter(*tightest->limit, tightest->decision),
      .denied = !response.allowed,
      .partition_key = std::nullopt,
      .retry_after = std::nullopt,
  };
  state.policy_part = PartOf(*tightest);
  if (tightest->rule != nullptr) state.dialect = tightest->rule->rate_limit_fields;
  SetUnit(*tightest, state);
  return state;
}

}  // namespace headgate::answer
