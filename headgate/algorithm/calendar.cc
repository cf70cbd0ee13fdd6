#include "headgate/algorithm/calendar.h"

#include <chrono>

namespace headgate::algorithm {

base::Instant NextCalendarEdge(Align align, base::Instant now) {
  using namespace std::chrono;
  const auto today = floor<days>(sys_time<nanoseconds>(nanoseconds(now.ns)));
  const year_month_day date(today);
  const sys_days next = align == Align::kCalendarMonth
                            ? sys_days(date.year() / date.month() / 1 + months(1))
                            : sys_days((date.year() + years(1)) / January / 1);
  return base::Instant::FromNanos(time_point_cast<nanoseconds>(next).time_since_epoch().count());
}

}  // namespace headgate::algorithm
