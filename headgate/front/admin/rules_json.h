// The rules in force, as JSON for people and programs.
#pragma once

#include <cstddef>
#include <string>

#include "headgate/rule/rule_set.h"

namespace headgate::front::admin {

// Rules per response. Listing a hundred thousand at once would block the loop.
inline constexpr size_t kRulesPerPage = 1000;

// Appends one rule: {"domain":…,"rule":…,"limits":[…],…}.
void AppendRule(const rule::Rule& rule, std::string& out);

// Appends {"rules":[{"domain":…,"rule":…,"limits":[…],…}],"next":…}: one page of rules, starting
// with number `from`. `next` is the number to continue with, or null.
void AppendRules(const rule::RuleSet& rules, size_t from, std::string& out);

}  // namespace headgate::front::admin
