#include "tests/scenarios/rule_text.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <vector>

#include "headgate/rule/block_words.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/read/load.h"
#include "headgate/testing/scenario_rules.h"

namespace headgate::testing {
namespace {

using algorithm::Algorithm;
using algorithm::Align;

std::string PeriodText(const algorithm::LimitSpec& spec) {
  if (spec.align == Align::kCalendarWeek) return "week";
  if (spec.align == Align::kCalendarMonth) return "month";
  if (spec.align == Align::kCalendarYear) return "year";
  if (spec.align == Align::kCalendarDay) return "day";
  return rule::FormatDuration(spec.period);
}

// An item of `rate_limits`.
std::string LimitText(const algorithm::LimitSpec& spec) {
  const bool queue = spec.algorithm == Algorithm::kLeakyBucketQueue;
  std::string text = fmt::format(
      "      - requests_per_unit: {}\n"
      "        period: {}\n"
      "        algorithm: {}\n",
      spec.requests, PeriodText(spec), Name(queue ? Algorithm::kLeakyBucket : spec.algorithm));
  const auto add = [&text](std::string_view line) {
    fmt::format_to(std::back_inserter(text), "        {}\n", line);
  };
  if (queue) add("queue: true");
  if (spec.burst) add(fmt::format("burst: {}", *spec.burst));
  if (spec.align == Align::kFirstHit) add("align: first_hit");
  if (!spec.zone.is_utc()) add(fmt::format("timezone: {}", spec.zone.name()));
  if (spec.count_denied) add("count_denied: true");
  if (spec.overdraw) add("overdraw: true");
  if (!spec.block.empty()) add("block: " + rule::Describe(spec.block));
  return text;
}

std::string FileText(const ScenarioRule& rule) {
  std::string text = fmt::format(
      "domain: \"{}\"\n"
      "descriptors:\n"
      "  - key: {}\n"
      "    rate_limits:\n",
      rule.name, kScenarioKey);
  for (const algorithm::Limit& limit : rule.limits) text += LimitText(limit.spec());
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const rule::RuleSet>> LoadScenarioRules(
    std::span<const ScenarioRule> rules) {
  std::vector<rule::read::RuleFile> files;
  for (const ScenarioRule& rule : rules)
    files.push_back({.name = rule.name + ".yaml", .text = FileText(rule)});
  rule::read::LoadResult loaded = rule::read::LoadRules(files);
  if (!loaded.ok()) return absl::InvalidArgumentError(rule::Describe(loaded.problems));
  return std::move(loaded.rules);
}

}  // namespace headgate::testing
