#include "headgate/front/answer/tightest.h"

#include <algorithm>

namespace headgate::front::answer {
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

std::optional<wire::RateLimitState> Tightest(const limiter::Response& response) {
  const std::optional<size_t> position = TightestDescriptor(response);
  if (!position) return std::nullopt;
  const DescriptorAnswer* const tightest = &response.descriptors[*position];

  const algorithm::LimitSpec& spec = tightest->limit->spec();
  const bool calendar = IsCalendar(spec.align);
  return wire::RateLimitState{
      .policy = tightest->rule != nullptr ? tightest->rule->label() : kOverridePolicy,
      .quota = spec.requests,
      // A limit of requests in flight has no window.
      .window = calendar || tightest->of_permits ? base::Duration(0) : spec.period,
      .limit = tightest->decision.limit,
      .remaining = tightest->decision.remaining,
      .reset_after = tightest->decision.reset_after,
      .denied = !response.allowed,
      .partition_key = std::nullopt,
      .retry_after = std::nullopt,
  };
}

}  // namespace headgate::front::answer
