// Counts the commands of one loop's Redis clients and the decisions of CL.THROTTLE. (The limiter's observer counts
// decisions by rules.) Written by the loop's thread, read by any.
#pragma once

#include "headgate/base/counter.h"

namespace headgate::front::resp {

struct alignas(64) Counters {
  base::Counter commands;          // answered, with a value or an error
  base::Counter errors;            // those answered with an error
  base::Counter logins_refused;    // a wrong password or user
  base::Counter throttle_allowed;  // CL.THROTTLE
  base::Counter throttle_denied;
  base::Counter throttle_never_fits;  // quantity above the limit
};

}  // namespace headgate::front::resp
