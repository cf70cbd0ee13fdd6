// The clock that the system's own waits follow. Only for code that waits: decisions use clock.h.
#pragma once

#include "headgate/base/time.h"

namespace headgate::base {

struct MonotonicTag;
// Nanoseconds of CLOCK_MONOTONIC, which stops during suspend.
using MonotonicTime = TimePoint<MonotonicTag>;

// Thread-safe.
MonotonicTime MonotonicNow();

}  // namespace headgate::base
