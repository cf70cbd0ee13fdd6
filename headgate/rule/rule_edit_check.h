// Compares a rule file before and after the edit of one rule. This is the proof that rule_edit.h
// asks for, so it shares no code with the edit: it compares the trees that a loader reads.
#pragma once

#include <span>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/document.h"
#include "headgate/rule/rule_edit.h"

namespace headgate::rule {

// The rules below a mapping; empty if there are none.
std::span<const DocumentNode* const> DescriptorsOf(const DocumentNode& mapping);
// The last value of a field, or null.
const DocumentNode* FieldOf(const DocumentNode& mapping, std::string_view field);
// The text of a field as the loader reads it; empty if it is absent, null or no text.
std::string_view FieldText(const DocumentNode& mapping, std::string_view field);
// Whether a field belongs to the limit of a rule, not to the rules below it.
bool IsOfLimit(std::string_view field);

// Internal unless `after` is `before` with this rule put, or removed (without `rule`).
absl::Status CheckEdit(const DocumentNode& before, const DocumentNode& after,
                       std::span<const RuleEntry> path, const DocumentNode* rule);

}  // namespace headgate::rule
