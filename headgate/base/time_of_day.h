// The time that people and protocols are told, in answers that are made at the time of decisions.
#pragma once

#include "headgate/base/clock.h"
#include "headgate/base/time.h"

namespace headgate::base {

// The time of decisions follows a step of the wall clock only within days; this follows at once.
// Without a clock it is the time of decisions.
inline WallTime TimeOfDay(const Clock* clock, Instant now) {
  return clock == nullptr ? WallTime::FromNanos(now.ns) : clock->WallNow();
}

}  // namespace headgate::base
