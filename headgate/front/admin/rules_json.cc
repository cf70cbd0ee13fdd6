#include "headgate/front/admin/rules_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "headgate/base/json.h"
#include "headgate/rule/duration.h"

namespace headgate::front::admin {
namespace {

using algorithm::Algorithm;
using algorithm::Align;

std::string_view Name(Align align) {
  switch (align) {
    case Align::kEpoch:
      return "epoch";
    case Align::kFirstHit:
      return "first_hit";
    case Align::kCalendarMonth:
      return "calendar_month";
    case Align::kCalendarYear:
      return "calendar_year";
  }
  __builtin_unreachable();
}

void AppendField(std::string_view name, std::string_view value, std::string& out) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":)", name);
  base::AppendJsonString(value, out);
}

void AppendLimit(const rule::RuleLimit& rule_limit, std::string& out) {
  const algorithm::Limit& limit = rule_limit.limit;
  const algorithm::LimitSpec& spec = limit.spec();
  // Uses the words of a rule file, in which the queue is a mode of the leaky bucket.
  const bool queue = spec.algorithm == Algorithm::kLeakyBucketQueue;
  out.append(R"({"algorithm":)");
  base::AppendJsonString(algorithm::Name(queue ? Algorithm::kLeakyBucket : spec.algorithm), out);
  fmt::format_to(std::back_inserter(out), R"(,"requests":{})", spec.requests);
  if (!IsCalendar(spec.align)) AppendField("period", rule::FormatDuration(spec.period), out);
  if (queue || spec.algorithm == Algorithm::kTokenBucket ||
      spec.algorithm == Algorithm::kLeakyBucket) {
    fmt::format_to(std::back_inserter(out), R"(,"burst":{})", limit.capacity());
  }
  if (queue) out.append(R"(,"queue":true)");
  if (spec.algorithm == Algorithm::kFixedWindow) AppendField("align", Name(spec.align), out);
  if (spec.count_denied) out.append(R"(,"count_denied":true)");
  if (rule_limit.cost) {
    fmt::format_to(std::back_inserter(out), R"(,"cost":{{"of":"{}","per":{},"reserve":{}}})",
                   rule::Name(rule_limit.cost->of), rule_limit.cost->per_bytes,
                   rule_limit.cost->reserve_bytes);
  }
  out.append("}");
}

void AppendLimits(const std::vector<rule::RuleLimit>& limits, std::string& out) {
  out.append("[");
  for (const rule::RuleLimit& limit : limits) {
    if (&limit != &limits.front()) out.append(",");
    AppendLimit(limit, out);
  }
  out.append("]");
}

void AppendConcurrency(const std::optional<rule::ConcurrencyLimit>& limit, std::string& out) {
  if (!limit) {
    out.append("null");
    return;
  }
  fmt::format_to(std::back_inserter(out), R"({{"requests":{})", limit->max);
  AppendField("ttl", rule::FormatDuration(limit->ttl), out);
  out.append("}");
}

void AppendRollout(const rule::Rollout* rollout, std::string& out) {
  if (rollout == nullptr) {
    out.append("null");
    return;
  }
  if (rollout->shadow()) {
    out.append(R"({"shadow":true,"limits":)");
  } else {
    constexpr uint32_t kPpmPerPercent = 10'000;
    fmt::format_to(std::back_inserter(out), R"({{"percent":{}.{:04},"limits":)",
                   rollout->keys_ppm / kPpmPerPercent, rollout->keys_ppm % kPpmPerPercent);
  }
  AppendLimits(rollout->limits, out);
  out.append("}");
}

}  // namespace

void AppendRule(const rule::Rule& rule, std::string& out) {
  out.append(R"({"domain":)");
  base::AppendJsonString(rule.domain, out);
  AppendField("rule", rule.label(), out);
  AppendField("path", rule.path, out);
  out.append(R"(,"limits":)");
  AppendLimits(rule.limits, out);
  out.append(R"(,"concurrency":)");
  AppendConcurrency(rule.concurrency, out);
  fmt::format_to(std::back_inserter(out), R"(,"unlimited":{},"shadow":{},"quota":{},"replaces":[)",
                 rule.unlimited, rule.shadow_mode, rule.quota_mode);
  for (const std::string& name : rule.replaces) {
    if (&name != &rule.replaces.front()) out.append(",");
    base::AppendJsonString(name, out);
  }
  out.append(R"(],"rollout":)");
  AppendRollout(rule.rollout.get(), out);
  out.append(R"(,"metadata":)")
      .append(rule.metadata_json.empty() ? "null" : rule.metadata_json)
      .append("}");
}

void AppendRules(const rule::RuleSet& rules, size_t from, std::string& out) {
  const std::span<const rule::Rule> all = rules.rules();
  const size_t begin = std::min(from, all.size());
  const std::span<const rule::Rule> page =
      all.subspan(begin, std::min(kRulesPerPage, all.size() - begin));
  out.append(R"({"rules":[)");
  for (const rule::Rule& rule : page) {
    if (&rule != &page.front()) out.append(",");
    AppendRule(rule, out);
  }
  const size_t next = begin + page.size();
  out.append(R"(],"next":)")
      .append(next < all.size() ? std::to_string(next) : "null")
      .append("}\n");
}

}  // namespace headgate::front::admin
