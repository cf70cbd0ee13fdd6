#include "headgate/testing/scenario_rules.h"

#include <algorithm>
#include <string>

namespace headgate::testing {

ScenarioRuleSet::ScenarioRuleSet(std::span<const ScenarioRule> rules) {
  for (const ScenarioRule& from : rules) {
    rule::Rule to;
    to.domain = kScenarioDomain;
    to.name = to.path = to.identity = from.name;
    to.limits.push_back({.limit = from.limit, .unit = std::nullopt});
    rules_.push_back(std::move(to));
  }
  std::ranges::sort(rules_, {}, &rule::Rule::name);
  for (size_t i = 0; i < rules_.size(); ++i) rules_[i].index = static_cast<uint32_t>(i);
}

bool ScenarioRuleSet::Find(std::string_view domain, std::span<const rule::Entry> entries, rule::Match& match) const {
  match.rule = nullptr;
  match.step_count = 0;
  if (domain != kScenarioDomain) return false;
  if (entries.size() != 1) return true;
  const auto found = std::ranges::lower_bound(rules_, entries[0].key, {},
                                              [](const rule::Rule& rule) { return std::string_view(rule.name); });
  if (found == rules_.end() || found->name != entries[0].key) return true;
  match.rule = &*found;
  match.steps[0] = {};
  match.step_count = 1;
  return true;
}

}  // namespace headgate::testing
