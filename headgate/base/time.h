// Three kinds of time that cannot be mixed.
//
//   Duration   a length of time, in whole nanoseconds
//   Instant    a point on the clock of the owner of the state (a store, an event loop),
//              in ns since the zero of that clock
//   WallTime   a point on the calendar, in ns since 1970-01-01 UTC; for people and protocols
//
// An Instant passed to a decision also counts nanoseconds since the Unix epoch, because windows are
// aligned to the epoch. It comes from a DisciplinedClock (see clock.h), which a step of the wall
// clock does not move. Nothing here reads a clock.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace headgate::base {

using Duration = std::chrono::nanoseconds;

// A point in time on the clock named by `Tag`. Trivial, 8 bytes; the zero value is the zero of that
// clock.
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

// The latest instant that any computation uses: 2^62 ns, in the year 2116. The sum of such an
// instant and a span of at most kDurationMax fits into 63 bits. Every decision relies on this to
// exclude overflow.
inline constexpr Instant kInstantMax = Instant::FromNanos(int64_t{1} << 62);
inline constexpr Duration kDurationMax = Duration((int64_t{1} << 62) - 1);
static_assert(kInstantMax.ns + kDurationMax.count() > 0);

// Returns `t` clamped to [0, kInstantMax]. Every instant from outside passes through here once.
constexpr Instant Clamp(Instant t) {
  if (t.ns < 0) return Instant::FromNanos(0);
  return t < kInstantMax ? t : kInstantMax;
}

}  // namespace headgate::base
