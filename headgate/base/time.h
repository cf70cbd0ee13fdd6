// Three kinds of time that cannot be mixed.
//
//   Duration   a length of time, whole nanoseconds
//   Instant    a point on the clock of whoever owns the state (a store, an event loop): ns since
//   that clock's zero WallTime   a point on the calendar: ns since 1970-01-01 UTC, for people and
//   protocols
//
// An Instant handed to a decision counts nanoseconds since the Unix epoch too, because windows are
// aligned to it, but it comes from a DisciplinedClock, which no step of the wall clock moves (see
// clock.h). Nothing here reads a clock.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace headgate::base {

using Duration = std::chrono::nanoseconds;

// A point in time of the clock named by `Tag`. Trivial, 8 bytes; the zero value is the clock's
// zero.
template <typename Tag>
struct TimePoint {
  int64_t ns;

  static constexpr TimePoint FromNanos(int64_t ns) { return TimePoint{ns}; }
  constexpr auto operator<=>(const TimePoint&) const = default;

  friend constexpr Duration operator-(TimePoint a, TimePoint b) { return Duration(a.ns - b.ns); }
  friend constexpr TimePoint operator+(TimePoint t, Duration d) {
    return TimePoint{t.ns + d.count()};
  }
  friend constexpr TimePoint operator-(TimePoint t, Duration d) {
    return TimePoint{t.ns - d.count()};
  }
  constexpr TimePoint& operator+=(Duration d) {
    ns += d.count();
    return *this;
  }
};

using Instant = TimePoint<struct OwnersClock>;
using WallTime = TimePoint<struct UnixClock>;

// The latest instant that anything here computes with: 2^62 ns, the year 2116. Adding a span of at
// most kDurationMax to it stays inside 63 bits, which is the overflow argument of every decision.
inline constexpr Instant kInstantMax = Instant::FromNanos(int64_t{1} << 62);
inline constexpr Duration kDurationMax = Duration((int64_t{1} << 62) - 1);
static_assert(kInstantMax.ns + kDurationMax.count() > 0);

// `t` moved into [0, kInstantMax]: instants from outside pass through here once.
constexpr Instant Clamp(Instant t) {
  if (t.ns < 0) return Instant::FromNanos(0);
  return t < kInstantMax ? t : kInstantMax;
}

}  // namespace headgate::base
