// Compares a rule file before and after the edit of one rule. This is the proof that rule_edit.h
// asks for, so it shares no code with the edit: it compares the trees that a loader reads.
#pragma once

#include <span>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/edit/rule_edit.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::edit {

// The rules below a mapping; empty if there are none.
std::span<const read::DocumentNode* const> DescriptorsOf(const read::DocumentNode& mapping);
// The last value of a field, or null.
const read::DocumentNode* FieldOf(const read::DocumentNode& mapping, std::string_view field);
// The text of a field as the loader reads it; empty if it is absent, null or no text.
std::string_view FieldText(const read::DocumentNode& mapping, std::string_view field);
// Whether a field belongs to the limit of a rule, not to the rules below it.
bool IsOfLimit(std::string_view field);

// Checks that `after` differs from `before` only in this rule: it has been put, or removed if
// `rule` is null. Internal if not.
absl::Status CheckEdit(const read::DocumentNode& before, const read::DocumentNode& after,
                       std::span<const RuleEntry> path, const read::DocumentNode* rule);

}  // namespace headgate::rule::edit
