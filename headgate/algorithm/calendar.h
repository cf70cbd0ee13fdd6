// The beginnings of UTC months and years: proleptic Gregorian, without leap seconds, like Unix
// time.
#pragma once

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The first instant after `now` at which a calendar window of this alignment begins. `align` is one
// of the two calendar alignments.
base::Instant NextCalendarEdge(Align align, base::Instant now);

}  // namespace headgate::algorithm
