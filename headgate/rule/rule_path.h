// The way to a rule in a rule file: its domain, and the entries from the domain's root down to it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headgate::rule {

// Longer keys, values and domains are refused. (So are rules at a depth that no request reaches.)
inline constexpr size_t kTextBytesMax = 4096;
// One step from the domain's root down to a rule. An empty value means no value.
struct RuleEntry {
  std::string key;
  std::optional<std::string> value{};
  bool operator==(const RuleEntry&) const = default;
};

// A rule of a rule file.
struct RulePath {
  std::string domain;
  std::vector<RuleEntry> entries;  // from the domain's root down; at least one
};

}  // namespace headgate::rule
