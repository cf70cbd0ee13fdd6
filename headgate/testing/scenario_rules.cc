#include "headgate/testing/scenario_rules.h"

#include <string>
#include <vector>

#include "headgate/rule/builder.h"

namespace headgate::testing {

absl::StatusOr<std::shared_ptr<const rule::RuleSet>> BuildScenarioRules(
    std::span<const ScenarioRule> rules) {
  std::vector<rule::PlainRule> plain;
  for (const ScenarioRule& rule : rules) {
    plain.push_back({.domain = rule.name, .key = std::string(kScenarioKey), .limits = rule.limits});
  }
  return rule::BuildRules(plain);
}

}  // namespace headgate::testing
