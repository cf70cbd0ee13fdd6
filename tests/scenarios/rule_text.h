// Writes a scenario's rules as rule files, so that the test covers the reading of rules too.
#pragma once

#include <memory>
#include <span>

#include "headgate/base/status.h"
#include "headgate/rule/rule_set.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

// The rules of BuildScenarioRules, read from one file for each domain.
absl::StatusOr<std::shared_ptr<const rule::RuleSet>> LoadScenarioRules(
    std::span<const ScenarioRule> rules);

}  // namespace headgate::testing
