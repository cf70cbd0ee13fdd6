// The words that define a limit in a rule file or a one-liner, and their combined meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// The length of a limit's period. Day, week, month and year are kept as units, because a fixed
// window of one of them can follow the calendar.
struct Period {
  base::Duration length{0};
  std::optional<Unit> calendar{};  // kDay, kWeek, kMonth or kYear
};

// Parses a unit in any letter case, or a duration. `letters` says whether a bare letter of a
// duration ("s") is accepted as a unit.
enum class Letters : uint8_t { kRefused, kAllowed };
absl::StatusOr<Period> ParsePeriod(std::string_view text, Letters letters = Letters::kRefused);

// A warning about a period of an algorithm other than the fixed window, whose length is not the
// calendar's: "a month is 30 days here". Empty for a week, which has seven days everywhere.
std::string_view LengthOfUnit(const Period& period);

struct LimitWords {
  uint64_t requests = 0;
  Period period;
  // Whether the limit has only Envoy's own words, with `unit`. Then it is Envoy's fixed window.
  bool envoy = false;
  std::optional<algorithm::Algorithm> algorithm{};
  std::optional<uint64_t> burst{};
  bool queue = false;
  std::optional<base::Duration> max_delay{};
  std::optional<algorithm::Align> align{};  // kEpoch or kFirstHit
  std::optional<base::TimeZone> timezone{};
  bool count_denied = false;
  bool overdraw = false;
  algorithm::BlockLengths block{};
};

// Whether a fixed window of these words ends with the calendar's. Each day of UTC is 24 hours, so
// its days need no calendar.
bool FollowsCalendar(const LimitWords& words);

// The reason why the words contradict each other.
struct LimitWordsProblem {
  enum class About : uint8_t {
    kRequests,
    kPeriod,
    kBurst,
    kAlign,
    kTimezone,
    kCountDenied,
    kOverdraw,
    kBlock,
    kQueue,
    kMaxDelay
  };
  About about;          // the word to change
  std::string message;  // a message that names it
};
// Returns nothing if MakeLimit(words) would succeed.
std::optional<LimitWordsProblem> ProblemWith(const LimitWords& words);

// InvalidArgument with the message of ProblemWith(words).
absl::StatusOr<RuleLimit> MakeLimit(const LimitWords& words);

}  // namespace headgate::rule::read
