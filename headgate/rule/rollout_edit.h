// Begins, changes, promotes and ends the roll-out of one rule of a rule file (rule_edit.h). The
// rest of the file stays as it is written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/rule_edit.h"

namespace headgate::rule {

// Each has the errors of PutRule, and NotFound if there is no such rule, or no roll-out of it.

// `rollout` is a YAML or JSON mapping: percent or shadow, and rate_limit or rate_limits. Without a
// limit, it keeps the one of the roll-out that is under way.
absl::StatusOr<std::string> PutRollout(std::string_view document, std::span<const RuleEntry> path,
                                       std::string_view rollout);
// Its limits become those of the rule.
absl::StatusOr<std::string> PromoteRollout(std::string_view document,
                                           std::span<const RuleEntry> path);
// The rule keeps its limits.
absl::StatusOr<std::string> EndRollout(std::string_view document, std::span<const RuleEntry> path);

// The text of `domain` of a rule file; empty if it has none.
std::string DomainOf(std::string_view document);

}  // namespace headgate::rule
