// The only place where time is read. All other code gets the time as its last argument, named
// `now`.
//
// SystemClock asks the operating system. DisciplinedClock combines the two system clocks into the
// one that decisions use. It starts at the wall time and then follows CLOCK_BOOTTIME, which counts
// through a suspend and is never set. It is slewed towards the wall clock by at most 500 ppm, the
// largest rate at which NTP slews. A step of the wall clock therefore moves no window and refills
// no bucket; an error of one hour is corrected within 83 days.
#pragma once

#include <atomic>

#include "headgate/base/time.h"

namespace headgate::base {

struct BootTag;
// Nanoseconds since the machine booted, suspended time included.
using BootTime = TimePoint<BootTag>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime BootNow() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  BootTime BootNow() const override;
  WallTime WallNow() const override;
};

// Moves only when told to. Not thread-safe: tests move it only while no other thread reads it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime start = WallTime::FromNanos(0)) : wall_(start) {}
  BootTime BootNow() const override { return boot_; }
  WallTime WallNow() const override { return wall_; }

  void Advance(Duration d) {
    boot_ += d;
    wall_ += d;
  }
  // Steps only the wall clock, as an operator or NTP would.
  void StepWall(Duration d) { wall_ += d; }

 private:
  BootTime boot_{0};
  WallTime wall_;
};

// Thread-safe. Now() may go back slightly while the clock is slewed back towards the wall clock: by
// at most 500 ppm of the time since the last Discipline(). Each bucket clamps such a step itself.
class DisciplinedClock {
 public:
  explicit DisciplinedClock(const Clock& clock);

  Instant Now() const;

  // The clock that this one follows.
  const Clock& source() const { return clock_; }

  // Slews the clock towards the wall clock by at most 500 ppm of the time since the last call. Call
  // it about once a second, from one thread at a time. Returns how far the wall clock is ahead
  // afterwards (negative if it is behind).
  Duration Discipline();

 private:
  const Clock& clock_;
  std::atomic<int64_t> offset_ns_;  // Instant = BootTime + offset.
  BootTime disciplined_at_;
};

}  // namespace headgate::base
