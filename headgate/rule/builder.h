// Rules made by a program instead of from text: one key each, without values or nesting.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// Applies to every descriptor that has one entry with this key, whatever its value. The key is also
// the rule's name.
struct PlainRule {
  std::string domain;
  std::string key;
  std::vector<algorithm::Limit> limits;  // at least one, at most kLimitsPerRuleMax
};

// InvalidArgument if a domain or key is empty or occurs twice, or if the number of limits is out of
// bounds.
absl::StatusOr<std::shared_ptr<const RuleSet>> BuildRules(std::span<const PlainRule> rules);

}  // namespace headgate::rule
