#include "headgate/front/api/check_answer.h"

#include <algorithm>

#include "headgate/base/json.h"

namespace headgate::front::api {
namespace {

using algorithm::Decision;
using limiter::DescriptorAnswer;
using limiter::Outcome;

constexpr std::string_view kNoSuchDomain =
    "no rule has this domain, so nothing limits the request; GET /v1/rules lists the domains that "
    "have rules";
constexpr std::string_view kNoDefaultDomain =
    "no rule has the domain \"default\", which is used if \"domain\" is missing, so nothing limits "
    "the request; GET /v1/rules lists the domains that have rules";

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
    if (decision.blocked()) {
      out.append(R"(,"blocked_ms":)");
      AppendMs(decision.blocked_for, out);
    }
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

}  // namespace

void AppendAnswer(const limiter::Response& response, std::string& out, std::string_view hint) {
  out.push_back('{');
  AppendAnswerFields(response, out, hint);
  out.append("}\n");
}

void AppendAnswerFields(const limiter::Response& response, std::string& out,
                        std::string_view hint) {
  out.append(R"("allowed":)");
  base::AppendJsonBool(response.allowed, out);
  out.append(R"(,"decisions":[)");
  for (const DescriptorAnswer& outcome : response.descriptors) {
    if (out.back() == '}') out.push_back(',');
    AppendDecision(outcome, out);
  }
  out.push_back(']');
  if (hint.empty()) return;
  out.append(R"(,"hint":)");
  base::AppendJsonString(hint, out);
}

std::string_view HintOnDomain(const limiter::Request& request, const limiter::Response& response,
                              limiter::Checker& checker) {
  const bool passed_by_no_rule =
      std::all_of(response.descriptors.begin(), response.descriptors.end(),
                  [](const DescriptorAnswer& outcome) {
                    return outcome.rule == nullptr && outcome.outcome == Outcome::kNoRule;
                  });
  if (!passed_by_no_rule) return {};
  const rule::RuleSet* const rules = checker.rules();
  rule::Match match;
  if (rules == nullptr || rules->Find(request.domain, request.descriptors.front().entries, match))
    return {};
  return request.domain == rule::kDefaultDomain ? kNoDefaultDomain : kNoSuchDomain;
}

}  // namespace headgate::front::api
