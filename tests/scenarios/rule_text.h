// A scenario's rules as the rule files that a server would read, so that what is tested begins with
// what people write.
#pragma once

#include <memory>
#include <span>

#include "headgate/base/status.h"
#include "headgate/rule/rule_set.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

// The rules of BuildScenarioRules, by way of one file for each domain.
absl::StatusOr<std::shared_ptr<const rule::RuleSet>> LoadScenarioRules(
    std::span<const ScenarioRule> rules);

}  // namespace headgate::testing
