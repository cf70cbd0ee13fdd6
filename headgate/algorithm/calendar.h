// The beginnings of days, weeks (on Monday, ISO 8601), months and years in a time zone: proleptic
// Gregorian, without leap seconds, like Unix time.
//
// A day begins when its date does: at midnight, or at the first time after it if the clocks skip
// midnight. If the clocks go back over midnight, the day begins when midnight comes for the last
// time. So every instant is in one day, and days follow each other.
#pragma once

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/base/time_zone.h"

namespace headgate::algorithm {

// The first instant after `now` at which a calendar window of this alignment begins. `align` is one
// of the calendar alignments.
base::Instant NextCalendarEdge(Align align, base::TimeZone zone, base::Instant now);

}  // namespace headgate::algorithm
