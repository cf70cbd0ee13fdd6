// A scenario's rules as the limiter reads them: in one domain, one rule for each name, which a descriptor of one entry
// asks: its key is the rule's name, its value the bucket's key.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "headgate/rule/rule_set.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

inline constexpr std::string_view kScenarioDomain = "scenario";

class ScenarioRuleSet final : public rule::RuleSet {
 public:
  explicit ScenarioRuleSet(std::span<const ScenarioRule> rules);

  bool Find(std::string_view domain, std::span<const rule::Entry> entries, rule::Match& match) const override;
  bool AllOrNothing(std::string_view /*domain*/) const override { return false; }
  std::span<const rule::Rule> rules() const override { return rules_; }

 private:
  std::vector<rule::Rule> rules_;  // by name
};

}  // namespace headgate::testing
