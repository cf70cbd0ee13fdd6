// Counts the commands of one loop's Redis clients. (The limiter's observer counts decisions.)
// Written by the loop's thread, readable by any.
#pragma once

#include "headgate/base/counter.h"

namespace headgate::front::resp {

struct alignas(64) Counters {
  base::Counter commands;  // answered, with a value or an error
  base::Counter errors;    // answered with an error
};

}  // namespace headgate::front::resp
