// The time of day for people and protocols, in answers whose decisions use an Instant.
#pragma once

#include "headgate/base/clock.h"
#include "headgate/base/time.h"

namespace headgate::base {

// The time of decisions follows a step of the wall clock only slowly, over days; the time of day
// follows at once. Without a clock, `now` is converted.
inline WallTime TimeOfDay(const Clock* clock, Instant now) {
  return clock == nullptr ? WallTime::FromNanos(now.ns) : clock->WallNow();
}

}  // namespace headgate::base
