// The limit of one API key as a small JSON object (or YAML, of which JSON is a part):
//
//   {"Limit": 10, "WindowSeconds": 20}
//   {"Limit": 100, "Window": "1m", "Algorithm": "token_bucket", "Burst": 20}
//   {"Limit": 20, "Algorithm": "concurrency", "Ttl": "60s"}
//   {"Limits": [{"Limit": 10, "WindowSeconds": 1}, {"Limit": 1000, "Window": "hour"}]}
//
// It is the rule `api_key=KEY` in the domain `default`. Without an algorithm it is a fixed window
// that opens with the first admitted request. docs/reference/key-limits.md lists all words.
#pragma once

#include <string_view>
#include <vector>

#include "headgate/rule/problem.h"

namespace headgate::rule::read {

inline constexpr std::string_view kKeyLimitDomain = "default";
inline constexpr std::string_view kKeyLimitKey = "api_key";
// A longer text is refused.
inline constexpr size_t kKeyLimitBytesMax = 65'536;

// Adds the rule of a key to the tree that is being built, or appends the problems of the text.
// `source` is their `file`, and must outlive `state`.
struct LoadState;
void AddKeyLimit(std::string_view source, std::string_view api_key, std::string_view json,
                 LoadState& state, std::vector<Problem>& problems);

}  // namespace headgate::rule::read
