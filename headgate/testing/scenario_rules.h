// A scenario's rules as a limiter reads them: each in a domain of its own, which has the rule's
// name and one key. What is asked of NAME:KEY is therefore asked in domain NAME by the descriptor
// (kScenarioKey, KEY), and no name can be mistaken for another with a key.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/rule_set.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

inline constexpr std::string_view kScenarioKey = "key";

absl::StatusOr<std::shared_ptr<const rule::RuleSet>> BuildScenarioRules(
    std::span<const ScenarioRule> rules);

}  // namespace headgate::testing
