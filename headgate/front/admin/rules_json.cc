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
    case Align::kCalendarWeek:
      return "calendar_week";
    case Align::kCalendarDay:
      return "calendar_day";
  }
  __builtin_unreachable();
}

void AppendField(std::string_view name, std::string_view value, std::string& out) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":)", name);
  base::AppendJsonString(value, out);
}

void AppendTexts(std::string_view name, const std::vector<std::string>& texts, std::string& out) {
  out.append(name).append("[");
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out.append(",");
    base::AppendJsonString(text, out);
  }
  out.append("]");
}

void AppendLimit(const rule::RuleLimit& rule_limit, std::string& out) {
  const algorithm::Limit& limit = rule_limit.limit;
  const algorithm::LimitSpec& spec = limit.spec();
  const algorithm::Traits& traits = algorithm::TraitsOf(spec.algorithm);
  out.append(R"({"algorithm":)");
  base::AppendJsonString(traits.word, out);
  fmt::format_to(std::back_inserter(out), R"(,"requests":{})", spec.requests);
  if (!IsCalendar(spec.align)) AppendField("period", rule::FormatDuration(spec.period), out);
  if (IsBucket(spec.algorithm)) {
    fmt::format_to(std::back_inserter(out), R"(,"burst":{})", limit.capacity());
  }
  if (traits.queues) out.append(R"(,"queue":true)");
  if (traits.state == algorithm::StateForm::kWindow) AppendField("align", Name(spec.align), out);
  if (!spec.zone.is_utc()) AppendField("timezone", spec.zone.name(), out);
  if (spec.count_denied) out.append(R"(,"count_denied":true)");
  if (spec.overdraw) out.append(R"(,"overdraw":true)");
  if (!spec.block.empty()) {
    out.append(R"(,"block":)");
    for (size_t level = 0; level < spec.block.size(); ++level) {
      out.append(level == 0 ? "[" : ",");
      base::AppendJsonString(rule::FormatDuration(spec.block.at(level)), out);
    }
    out.append("]");
  }
  if (rule_limit.cost && rule_limit.cost->of == rule::SizeCost::Of::kCountedAnswers) {
    const rule::StatusCount& counted = rule_limit.cost->counted;
    AppendTexts(R"(,"count":{"status":)", counted.HttpItems(), out);
    AppendTexts(R"(,"grpc_status":)", counted.GrpcItems(), out);
    out.append("}");
  } else if (rule_limit.cost) {
    fmt::format_to(std::back_inserter(out), R"(,"cost":{{"of":"{}","per":{},"reserve":{}}})",
                   rule::Name(rule_limit.cost->of), rule_limit.cost->per_bytes,
                   rule_limit.cost->reserve_bytes);
  }
  if (rule_limit.given != nullptr) {
    if (rule_limit.given->max)
      fmt::format_to(std::back_inserter(out), R"(,"max":{})", *rule_limit.given->max);
    out.append(R"(,"plans":{)");
    for (const rule::GivenLimits::Plan& plan : rule_limit.given->plans) {
      if (&plan != &rule_limit.given->plans.front()) out.append(",");
      base::AppendJsonString(plan.name, out);
      fmt::format_to(std::back_inserter(out), ":{}", plan.limit.spec().requests);
    }
    out.append("}");
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

std::string_view Name(rule::Sharing sharing) {
  switch (sharing) {
    case rule::Sharing::kExact:
      return "exact";
    case rule::Sharing::kLeased:
      return "leased";
    case rule::Sharing::kStrict:
    case rule::Sharing::kLocked:
      return "strict";
  }
  __builtin_unreachable();
}

std::string_view Name(rule::OnStoreFailure failure) {
  switch (failure) {
    case rule::OnStoreFailure::kAllow:
      return "allow";
    case rule::OnStoreFailure::kDeny:
      return "deny";
    case rule::OnStoreFailure::kLocal:
      return "local";
  }
  __builtin_unreachable();
}

// The fields of the rule about stores; a field is null if its default applies.
void AppendStoreWords(const rule::Rule& rule, std::string& out) {
  constexpr uint32_t kPpm = 1'000'000;
  const auto append = [&](std::string_view name, std::optional<std::string_view> value) {
    if (value) return AppendField(name, *value, out);
    fmt::format_to(std::back_inserter(out), R"(,"{}":null)", name);
  };
  append("sharing", rule.sharing ? std::optional(Name(*rule.sharing)) : std::nullopt);
  append("strict", rule.sharing == rule::Sharing::kLocked ? std::optional("lock") : std::nullopt);
  append("on_store_failure",
         rule.on_store_failure ? std::optional(Name(*rule.on_store_failure)) : std::nullopt);
  if (!rule.fallback_share_ppm) return append("fallback_share", std::nullopt);
  fmt::format_to(std::back_inserter(out), R"(,"fallback_share":{}.{:06})",
                 *rule.fallback_share_ppm / kPpm, *rule.fallback_share_ppm % kPpm);
}

// The fields of the rule about answers; a field is null if its default applies.
void AppendAnswerWords(const rule::Rule& rule, std::string& out) {
  AppendField("quota_unit", base::Name(rule.quota_unit), out);
  if (rule.rate_limit_fields) {
    AppendField("rate_limit_fields", base::Name(*rule.rate_limit_fields), out);
  } else {
    out.append(R"(,"rate_limit_fields":null)");
  }
  if (rule.refusal == nullptr) {
    out.append(R"(,"refusal":null)");
    return;
  }
  out.append(R"(,"refusal":{"content_type":)");
  base::AppendJsonString(rule.refusal->content_type(), out);
  AppendField("body", rule.refusal->body(), out);
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
  fmt::format_to(std::back_inserter(out),
                 R"(,"unlimited":{},"shadow":{},"quota":{},"all_or_nothing":{})", rule.unlimited,
                 rule.shadow_mode, rule.quota_mode, rule.all_or_nothing);
  AppendStoreWords(rule, out);
  fmt::format_to(std::back_inserter(out),
                 R"(,"detailed_metric":{},"value_to_metric":{},"replaces":[)", rule.detailed_metric,
                 rule.value_to_metric);
  for (const std::string& name : rule.replaces) {
    if (&name != &rule.replaces.front()) out.append(",");
    base::AppendJsonString(name, out);
  }
  out.append("]");
  AppendAnswerWords(rule, out);
  out.append(R"(,"rollout":)");
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
