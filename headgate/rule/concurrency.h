// Limits of concurrency in the words of people:
//
//   rate_limit: {algorithm: concurrency, requests: 20, ttl: 30s}
//
// At most 20 requests of a key are in flight at the same time, and one that never ends counts for
// 30 s.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/rule/rule_set.h"

namespace headgate::rule {

inline constexpr std::string_view kConcurrency = "concurrency";

// The problem of a limit with more permits than a key may have.
std::string TooManyInFlight(uint64_t max);
// Why the limit is invalid, if it is.
std::optional<std::string> ProblemWith(const ConcurrencyLimit& limit);

// "20 in flight, concurrency, ttl 30s".
std::string Describe(const ConcurrencyLimit& limit);

}  // namespace headgate::rule
