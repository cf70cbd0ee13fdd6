// Properties of a limit on which leases depend.
#pragma once

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::limiter::lease {

inline bool IsWindow(const algorithm::Limit& limit) {
  return algorithm::IsWindow(limit.algorithm());
}

inline bool IsSlidingCounter(const algorithm::Limit& limit) {
  return limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter;
}

inline bool IsCalendar(const algorithm::Limit& limit) {
  return algorithm::IsCalendar(limit.spec().align);
}

// The period of a window that is not a calendar window.
inline base::Duration PeriodOf(const algorithm::Limit& limit) {
  return base::Duration(static_cast<int64_t>(limit.period()));
}

// The time in which an empty bucket fills; of a calendar window, its shortest period.
inline base::Duration FillOf(const algorithm::Limit& limit) {
  if (IsCalendar(limit)) return algorithm::ShortestCalendarPeriod(limit.spec());
  return IsWindow(limit) ? PeriodOf(limit) : base::Duration(static_cast<int64_t>(limit.span()));
}

}  // namespace headgate::limiter::lease
