#include "headgate/store/cas/clock_offset.h"

#include <chrono>
#include <utility>

namespace headgate::store::cas {

std::optional<std::string> ClockOffset::OnMeasured(base::Duration offset,
                                                   base::Duration uncertainty) {
  last_ns_.store(offset.count(), std::memory_order_relaxed);
  const base::Duration distance = std::chrono::abs(offset);
  if (distance - uncertainty <= kClockOffsetMax) {
    // Not before it is near for certain, so that one that swings around the bound is one alarm.
    if (distance + uncertainty <= kClockOffsetMax) alarmed_ = false;
    return std::nullopt;
  }
  if (std::exchange(alarmed_, true)) return std::nullopt;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(distance).count();
  return "the clock of this machine is " + std::to_string(ms) + " ms " +
         (offset > base::Duration(0) ? "ahead of" : "behind") +
         " that of the store; with more than 30 ms, more may be let through than the limits say; "
         "let NTP set the clocks of all machines";
}

std::optional<base::Duration> ClockOffset::last() const {
  const int64_t ns = last_ns_.load(std::memory_order_relaxed);
  return ns == kUnknown ? std::nullopt : std::optional<base::Duration>(base::Duration(ns));
}

}  // namespace headgate::store::cas
