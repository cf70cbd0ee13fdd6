#include "headgate/base/monotonic_time.h"

#include <ctime>

namespace headgate::base {

MonotonicTime MonotonicNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return MonotonicTime::FromNanos(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace headgate::base
