// The differences between the rules before and after a change of documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// A rule that only one of two sets has, or that differs between them.
struct RuleDifference {
  std::optional<Rule> before{};  // absent: the rule is new
  std::optional<Rule> after{};   // absent: the rule is gone
  // The number of the rule's buckets in this instance's memory. Absent if it is unknown.
  std::optional<uint64_t> live_buckets{};
};

// In the order of `after`; the rules that are gone come last. The order of rules does not count as
// a difference.
std::vector<RuleDifference> DifferencesOf(const RuleSet& before, const RuleSet& after);

// Whether both limits decide in the same way.
bool AreAlike(const Rule& a, const Rule& b);

// The names of the fields that differ between both, other than their limits.
std::vector<std::string_view> OtherFieldsThatDiffer(const Rule& a, const Rule& b);

}  // namespace headgate::rule
