// What one loop's Redis clients asked, and how the raw limits among it were decided. (Decisions by rules are the
// limiter observer's to count.) Written by the loop's thread, read by any.
#pragma once

#include "headgate/net/counters.h"

namespace headgate::front::resp {

struct alignas(64) Counters {
  net::LoopCounter commands;          // answered, with a value or an error
  net::LoopCounter errors;            // those answered with an error
  net::LoopCounter logins_refused;    // a wrong password or user
  net::LoopCounter throttle_allowed;  // CL.THROTTLE
  net::LoopCounter throttle_denied;
  net::LoopCounter throttle_never_fits;  // quantity above the limit
};

}  // namespace headgate::front::resp
