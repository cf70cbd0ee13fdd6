#include "headgate/base/clock.h"

#include <algorithm>
#include <ctime>

namespace headgate::base {
namespace {

constexpr int64_t kSlewDivisor = 2000;  // 1/2000 = 500 ppm

int64_t ReadClock(clockid_t id) {
  timespec now;
  clock_gettime(id, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

BootTime SystemClock::BootNow() const { return BootTime::FromNanos(ReadClock(CLOCK_BOOTTIME)); }

WallTime SystemClock::WallNow() const { return WallTime::FromNanos(ReadClock(CLOCK_REALTIME)); }

DisciplinedClock::DisciplinedClock(const Clock& clock)
    : clock_(clock),
      offset_ns_(clock.WallNow().ns - clock.BootNow().ns),
      disciplined_at_(clock.BootNow()) {}

Instant DisciplinedClock::Now() const {
  return Clamp(
      Instant::FromNanos(clock_.BootNow().ns + offset_ns_.load(std::memory_order_relaxed)));
}

Duration DisciplinedClock::Discipline() {
  const BootTime boot = clock_.BootNow();
  const int64_t slew_max = std::max<int64_t>(0, (boot - disciplined_at_).count()) / kSlewDivisor;
  const int64_t offset = offset_ns_.load(std::memory_order_relaxed);
  const int64_t error = clock_.WallNow().ns - boot.ns - offset;
  const int64_t slew = std::clamp(error, -slew_max, slew_max);
  offset_ns_.store(offset + slew, std::memory_order_relaxed);
  disciplined_at_ = boot;
  return Duration(error - slew);
}

}  // namespace headgate::base
