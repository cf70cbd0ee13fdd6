// Converts a rate of CL.THROTTLE into numbers that a limit can hold: requests below 2^32, a period
// below 2^62 ns.
//
// Most rates fit or can be reduced to fit. The others are rounded down by less than one part in a
// million, so a bucket never refills faster than requested:
//
//   4,294,967,297 requests in 60 s   →   4,294,967,295 in 59.999999973 s
#pragma once

#include <cstdint>

#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::front::resp {

struct ThrottleRate {
  uint64_t requests = 0;
  base::Duration period{0};
};

// The period is `period_s` seconds and `period_ns` nanoseconds. The period and the count must be
// above 0. InvalidArgument if one request takes longer than 146 years, or if the rate would have to
// be rounded by more than one part in a million.
absl::StatusOr<ThrottleRate> RateOf(int64_t count, int64_t period_s, int64_t period_ns = 0);

}  // namespace headgate::front::resp
