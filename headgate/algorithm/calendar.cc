#include "headgate/algorithm/calendar.h"

#include <algorithm>
#include <chrono>

namespace headgate::algorithm {
namespace {

using base::TimeZone;
using std::chrono::days;
using std::chrono::floor;
using std::chrono::seconds;
using std::chrono::sys_days;
using Seconds = std::chrono::sys_seconds;  // of Unix time, or of local time as if it were UTC

using Changes = std::span<const TimeZone::Change>;

Seconds At(const TimeZone::Change& change) { return Seconds(seconds(change.at_s)); }
seconds Offset(const TimeZone::Change& change) { return seconds(change.offset_s); }

// The last change before or at `time`; before all changes, the first one.
Changes::iterator ChangeAt(Changes changes, Seconds time) {
  const auto after =
      std::upper_bound(changes.begin() + 1, changes.end(), time,
                       [](Seconds t, const TimeZone::Change& change) { return t < At(change); });
  return after - 1;
}

// The time at which the local date becomes `day` for good.
Seconds BeginOf(sys_days day, Changes changes) {
  // No local time is two days behind UTC.
  auto change = ChangeAt(changes, day + days(2));
  while (change != changes.begin() && day - Offset(*change) < At(*change)) --change;
  const Seconds begin = day - Offset(*change);
  const auto next = change + 1;
  return next == changes.end() ? begin : std::min(begin, At(*next));
}

// The first days of the window with this day, and of the next one.
struct FirstDays {
  sys_days of_window;
  sys_days of_next;
};
FirstDays FirstDaysOf(Align align, sys_days day) {
  using namespace std::chrono;
  const year_month_day date(day);
  if (align == Align::kCalendarDay) return {day, day + days(1)};
  if (align == Align::kCalendarWeek) {
    const sys_days monday = day - (weekday(day) - Monday);
    return {monday, monday + weeks(1)};
  }
  if (align == Align::kCalendarMonth) {
    const year_month month = date.year() / date.month();
    return {month / 1, (month + months(1)) / 1};
  }
  return {date.year() / January / 1, (date.year() + years(1)) / January / 1};
}

}  // namespace

base::Instant NextCalendarEdge(Align align, base::TimeZone zone, base::Instant now) {
  const Changes changes = zone.changes();
  const auto time = floor<seconds>(std::chrono::sys_time<base::Duration>(base::Duration(now.ns)));
  const auto today = floor<days>(time + Offset(*ChangeAt(changes, time)));
  const FirstDays first = FirstDaysOf(align, today);
  Seconds edge = BeginOf(first.of_window, changes);
  if (edge <= time) edge = BeginOf(first.of_next, changes);
  return base::Instant::FromNanos(base::Duration(edge.time_since_epoch()).count());
}

}  // namespace headgate::algorithm
