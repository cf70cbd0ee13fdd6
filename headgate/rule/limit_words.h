// The words that make a limit, as a rule file or a one-liner says them, and what they mean
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// How long a limit's period is. Month and year are words of their own because a fixed window of one
// ends with the calendar's.
struct Period {
  base::Duration length{0};
  std::optional<Unit> calendar{};  // kMonth or kYear
};

// A unit's word in any case, or a duration. A bare letter of a duration ("s") is one of it where
// `letters` allows.
enum class Letters : uint8_t { kRefused, kAllowed };
absl::StatusOr<Period> ParsePeriod(std::string_view text, Letters letters = Letters::kRefused);

struct LimitWords {
  uint64_t requests = 0;
  Period period;
  // In Envoy's own words, `unit` and none of ours: Envoy's fixed window.
  bool envoy = false;
  std::optional<algorithm::Algorithm> algorithm{};
  std::optional<uint64_t> burst{};
  bool queue = false;
  std::optional<base::Duration> max_delay{};
  std::optional<algorithm::Align> align{};  // kEpoch or kFirstHit
  bool count_denied = false;
};

// Why the words do not go together.
struct LimitWordsProblem {
  enum class About : uint8_t {
    kRequests,
    kPeriod,
    kBurst,
    kAlign,
    kCountDenied,
    kQueue,
    kMaxDelay
  };
  About about;          // the word to change
  std::string message;  // a sentence that names it
};
// Nothing: MakeLimit(words) succeeds.
std::optional<LimitWordsProblem> ProblemWith(const LimitWords& words);

// InvalidArgument with the message of ProblemWith(words).
absl::StatusOr<RuleLimit> MakeLimit(const LimitWords& words);

// "100 per 1m, token_bucket, burst 20": a limit as people read it.
std::string Describe(const algorithm::Limit& limit);

}  // namespace headgate::rule
