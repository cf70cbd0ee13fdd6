// Durations in rule files, one-liners, scenarios and settings: a number with a unit, or a sum of
// these.
//
//   20s   1h30m   9.9s   0s   1790000000s7ns
//
// Units: ns, us, ms, s, m, h, d (86,400 s). Decimal fractions are exact down to the nanosecond; a
// finer fraction is refused, never rounded.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::rule {

// InvalidArgument if the text is not a duration, or is one of 2^62 ns (146 years) or more.
// Durations cannot be negative.
absl::StatusOr<base::Duration> ParseDuration(std::string_view text);

// The shortest sum that ParseDuration reads back as the same duration: "1h30m", "9.9s",
// "1d0.000000007s". Negative durations, which ParseDuration refuses, begin with "-".
std::string FormatDuration(base::Duration duration);

}  // namespace headgate::rule
