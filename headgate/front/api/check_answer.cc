#include "headgate/front/api/check_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/json.h"

namespace headgate::front::api {
namespace {

using algorithm::Decision;
using limiter::DescriptorAnswer;
using limiter::Outcome;

// The policy name of an override, whose limit comes with the request and not from a rule.
constexpr std::string_view kOverridePolicy = "request";

void AppendMs(base::Duration d, std::string& out) {
  base::AppendJsonNumber(static_cast<uint64_t>(std::max<int64_t>(
                             0, std::chrono::ceil<std::chrono::milliseconds>(d).count())),
                         out);
}

void AppendDecision(const DescriptorAnswer& outcome, std::string& out) {
  out.append(R"({"allowed":)");
  base::AppendJsonBool(outcome.allowed(), out);
  if (outcome.has_decision()) {
    const Decision& decision = outcome.decision;
    out.append(R"(,"limit":)");
    base::AppendJsonNumber(decision.limit, out);
    out.append(R"(,"remaining":)");
    base::AppendJsonNumber(decision.remaining, out);
    out.append(R"(,"retry_after_ms":)");
    if (decision.never_fits()) {
      out.append("null");
    } else {
      AppendMs(decision.retry_after, out);
    }
    out.append(R"(,"reset_after_ms":)");
    AppendMs(decision.reset_after, out);
    out.append(R"(,"wait_ms":)");
    AppendMs(decision.wait, out);
  } else {
    out.append(
        R"(,"limit":null,"remaining":null,"retry_after_ms":0,"reset_after_ms":0,"wait_ms":0)");
  }
  out.append(R"(,"rule":)");
  if (outcome.rule != nullptr) {
    base::AppendJsonString(outcome.rule->label(), out);
  } else {
    out.append("null");
  }
  out.append(R"(,"shadow":)");
  base::AppendJsonBool(outcome.rule != nullptr && outcome.rule->shadow_mode, out);
  if (outcome.mode != limiter::Mode::kMemory)
    out.append(R"(,"mode":")").append(Name(outcome.mode)).append("\"");
  out.append("}");
}

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

void AppendAnswer(const limiter::Response& response, std::string& out) {
  out.append(R"({"allowed":)");
  base::AppendJsonBool(response.allowed, out);
  out.append(R"(,"decisions":[)");
  for (const DescriptorAnswer& outcome : response.descriptors) {
    if (out.back() == '}') out.push_back(',');
    AppendDecision(outcome, out);
  }
  out.append("]}\n");
}

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

std::optional<wire::RateLimitState> Tightest(const limiter::Response& response) {
  const DescriptorAnswer* tightest = nullptr;
  for (const DescriptorAnswer& outcome : response.descriptors) {
    if (IsEnforced(outcome) && (tightest == nullptr || Tighter(outcome, *tightest)))
      tightest = &outcome;
  }
  if (tightest == nullptr) return std::nullopt;

  const algorithm::LimitSpec& spec = tightest->limit->spec();
  const bool calendar = IsCalendar(spec.align);
  return wire::RateLimitState{
      .policy = tightest->rule != nullptr ? tightest->rule->label() : kOverridePolicy,
      .quota = spec.requests,
      .window = calendar ? base::Duration(0) : spec.period,
      .limit = tightest->decision.limit,
      .remaining = tightest->decision.remaining,
      .reset_after = tightest->decision.reset_after,
      .denied = !response.allowed,
      .retry_after = std::nullopt,
  };
}

}  // namespace headgate::front::api
