// Where time is read. Everything else gets it as an argument, named `now`, last.
//
// SystemClock is the only place that asks the operating system. DisciplinedClock turns its two
// clocks into the one that decisions use: it starts at the wall time, then follows CLOCK_BOOTTIME
// (which counts through a suspend and is never set), and is drawn towards the wall clock by at most
// 500 ppm, the largest rate at which NTP slews. A step of the wall clock therefore moves no window
// and wakes no bucket; an hour's error is made good in 83 days.
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

// Moves only when told to. Not thread-safe against its own movement: tests move it between steps.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime start = WallTime::FromNanos(0)) : wall_(start) {}
  BootTime BootNow() const override { return boot_; }
  WallTime WallNow() const override { return wall_; }

  void Advance(Duration d) {
    boot_ += d;
    wall_ += d;
  }
  // A step of the wall clock alone, as an operator or NTP would make it.
  void StepWall(Duration d) { wall_ += d; }

 private:
  BootTime boot_{0};
  WallTime wall_;
};

// Thread-safe. Now() may go back a little: when it is drawn back towards the wall, by at most 500
// ppm of what has passed since it last was. Each bucket clamps that itself.
class DisciplinedClock {
 public:
  explicit DisciplinedClock(const Clock& clock);

  Instant Now() const;

  // What it follows.
  const Clock& source() const { return clock_; }

  // Draws the clock towards the wall by at most 500 ppm of what has passed since the last call.
  // Call it every second or so, from one thread at a time. Returns how far the wall clock is ahead
  // afterwards (behind: negative).
  Duration Discipline();

 private:
  const Clock& clock_;
  std::atomic<int64_t> offset_ns_;  // Instant = BootTime + offset.
  BootTime disciplined_at_;
};

}  // namespace headgate::base
