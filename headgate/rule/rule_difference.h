// The differences between the rules before and after a change of documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// A rule that only one of two sets has, or that differs between them.
struct RuleDifference {
  std::optional<Rule> before{};  // absent: the rule is new
  std::optional<Rule> after{};   // absent: the rule is gone
  // Buckets of the rule that this instance holds in its own memory. Absent if it does not know.
  std::optional<uint64_t> live_buckets{};
};

// In the order of `after`; the rules that are gone come last. The place of a rule among the others
// does not count.
std::vector<RuleDifference> DifferencesOf(const RuleSet& before, const RuleSet& after);

// Whether both decide alike.
bool AreAlike(const Rule& a, const Rule& b);

}  // namespace headgate::rule
