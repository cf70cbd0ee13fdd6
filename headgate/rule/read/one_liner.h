// A rule on one line, for a command line:
//
//   key[=value][,key[=value]…]: REQUESTS/PERIOD [burst B] [ALGORITHM] [first_hit] [queue]
//
//   key[=value][,key[=value]…]: REQUESTS concurrency ttl DURATION
//
//   api_key: 100/minute burst 20
//   api_key: 20 concurrency ttl 30s
//   api_key=gold,path="/a, b": 10/20s sliding_window_log
//
// It belongs to the domain `default`. A value or key that contains one of `,:"` or a space is
// written in double quotes, with `"` and `\` escaped by a `\`. The period is a unit, a bare letter
// of a duration (s, m, h, d) or a duration. Words come in any order. The default algorithm is
// token_bucket, or leaky_bucket if `queue` is present.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/read/limit_words.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

inline constexpr std::string_view kOneLinerDomain = "default";
inline constexpr size_t kOneLinerBytesMax = 16'384;

struct OneLiner {
  struct Step {
    std::string key;
    std::string value;  // empty if absent
  };
  std::vector<Step> steps;
  LimitWords words;
  RuleLimit limit;  // the limit that the words define
  // Set if it limits concurrency. `words` and `limit` have no meaning then.
  std::optional<ConcurrencyLimit> concurrency{};
};

// A problem of a one-liner; the column counts bytes from 1.
struct OneLinerError {
  size_t column = 1;
  std::string message;
  std::string hint;
};

struct ParsedOneLiner {
  OneLiner rule;  // meaningless if there is an error
  std::optional<OneLinerError> error;
};
ParsedOneLiner ParseOneLiner(std::string_view text);

// The text that problems of a one-liner show in place of a file name.
std::string OneLinerSource(std::string_view text);

// Adds a one-liner to the tree that is being built. Steps that other rules have already made are
// shared. A node that already has a rule is reported as a duplicate.
struct LoadState;
void AddOneLiner(std::string_view text, LoadState& state, std::vector<Problem>& problems,
                 std::vector<Problem>& warnings);

}  // namespace headgate::rule::read
