// Edits one rule of a rule file that people write by hand: its comments, its order and its style
// survive.
//
//   domain: edge                          PutRule(…, {{"api_key", "gold"}},
//   descriptors:                                  {"rate_limit": {"unit": "minute",
//     - key: api_key                                              "requests_per_unit": 200}})
//       value: gold     # paying          changes the one number 100. No other byte changes.
//       rate_limit:
//         unit: minute
//         requests_per_unit: 100  # as in the contract
//
// Text in, text out. The result is read again before it is returned: if the edited rule is not the
// wanted one, or anything else has changed, the result is Internal. Whether the rule is valid is
// not checked here: load the result (read/load.h) before it is written.
//
// Errors: InvalidArgument if the path or the new rule is wrong ("line:column: " in the rule).
// FailedPrecondition if the document is not a rule file, has duplicate rules on the path, or cannot
// be changed in place; for example, if other rules would change too, because they are aliases of
// this one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/rule_path.h"

namespace headgate::rule::edit {

// A longer text of one rule is refused.
inline constexpr size_t kRuleBytesMax = size_t{1} << 20;

// The rule with the rules below it, as it is written: its lines without their indentation, each
// ended by "\n", after the comment lines directly above it. NotFound.
absl::StatusOr<std::string> RuleText(std::string_view document, std::span<const RuleEntry> path);

// Returns the document with this rule changed, or added if it does not exist. Missing parents are
// added too. New rules stand at the end of the `descriptors` of their parent.
//
// `rule` is a YAML or JSON mapping of all fields of the rule. `key` and `value` may be left out; if
// they are there, they must be those of the path. If there is no `descriptors`, the rules below
// stay. Fields with an equal value keep their lines. Comments in `rule` are not taken over.
absl::StatusOr<std::string> PutRule(std::string_view document, std::span<const RuleEntry> path,
                                    std::string_view rule);

// Returns the document without this rule. If there are rules below it, they stay, and only the
// fields of its limit are removed: rate_limit, rate_limits, rollout, shadow_mode, quota_mode,
// quota_unit, rate_limit_fields, refusal, detailed_metric and metadata. The comments directly above
// a removed rule or field, in the same column, are removed with it; comments above an empty line
// stay. NotFound if there is no such rule, or if it has no limit but only rules below it.
absl::StatusOr<std::string> RemoveRule(std::string_view document, std::span<const RuleEntry> path);

}  // namespace headgate::rule::edit
