// A rule in one line, for a command line:
//
//   key[=value][,key[=value]…]: REQUESTS/PERIOD [burst B] [ALGORITHM] [first_hit] [queue]
//
//   api_key: 100/minute burst 20
//   api_key=gold,path="/a, b": 10/20s sliding_window_log
//
// It belongs to the domain `default`. A value (or key) that holds one of `,:"` or a space stands in
// double quotes, `"` and
// `\` with a `\` before them. The period is a unit, a bare letter of a duration (s, m, h, d) or a
// duration. Words come in any order; the algorithm is token_bucket where none is named,
// leaky_bucket where `queue` is said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/limit_words.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

inline constexpr std::string_view kOneLinerDomain = "default";
inline constexpr size_t kOneLinerBytesMax = 16'384;

struct OneLiner {
  struct Step {
    std::string key;
    std::string value;  // empty: none
  };
  std::vector<Step> steps;
  LimitWords words;
  RuleLimit limit;  // what the words mean
};

// A problem of a one-liner; the column counts bytes from 1.
struct OneLinerError {
  size_t column = 1;
  std::string message;
  std::string hint;
};

struct ParsedOneLiner {
  OneLiner rule;  // meaningless where there is an error
  std::optional<OneLinerError> error;
};
ParsedOneLiner ParseOneLiner(std::string_view text);

// The text that stands in place of a file's name in problems of a one-liner.
std::string OneLinerSource(std::string_view text);

// Adds one to the tree that is being built. Steps that other rules have made already are shared; a
// node with a rule of its own is a double.
struct LoadState;
void AddOneLiner(std::string_view text, LoadState& state, std::vector<Problem>& problems,
                 std::vector<Problem>& warnings);

}  // namespace headgate::rule
