// Converts a scenario's rules for a limiter. Each rule gets a domain of its own, named after the
// rule, with one key. A request for NAME:KEY becomes a request in domain NAME with the descriptor
// (kScenarioKey, KEY), so names and keys cannot be confused.
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
