// Begins, changes, promotes and ends the roll-out of one rule of a rule file (rule_edit.h). The
// rest of the file stays as it is written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/edit/rule_edit.h"

namespace headgate::rule::edit {

// Each has the errors of PutRule, and NotFound if there is no such rule, or no roll-out of it.

// `rollout` is a YAML or JSON mapping: percent or shadow, and rate_limit or rate_limits. Without a
// limit, it keeps the limit of the present roll-out.
absl::StatusOr<std::string> PutRollout(std::string_view document, std::span<const RuleEntry> path,
                                       std::string_view rollout);
// The text of a roll-out with the limits of `limits`: a mapping with rate_limit or rate_limits,
// which may be the only item of a list, as RuleText has it. The key and the value of a rule are
// left out. `percent` as a person wrote it; without it, the roll-out is in shadow. InvalidArgument,
// with "line:column: " if it is about `limits`.
absl::StatusOr<std::string> RolloutWith(std::string_view limits,
                                        const std::optional<std::string>& percent);
// Makes the limits of the roll-out the limits of the rule.
absl::StatusOr<std::string> PromoteRollout(std::string_view document,
                                           std::span<const RuleEntry> path);
// Removes the roll-out; the rule keeps its limits.
absl::StatusOr<std::string> EndRollout(std::string_view document, std::span<const RuleEntry> path);

// The text of `domain` of a rule file; empty if it has none.
std::string DomainOf(std::string_view document);

}  // namespace headgate::rule::edit
