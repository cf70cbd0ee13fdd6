#include "headgate/store/cas/clock_offset.h"

#include <chrono>
#include <utility>

namespace headgate::store::cas {

std::optional<std::string> ClockOffset::OnMeasured(base::Duration offset,
                                                   base::Duration uncertainty) {
  last_ns_.store(offset.count(), std::memory_order_relaxed);
  const base::Duration distance = std::chrono::abs(offset);
  // The clock counts as near again only if that is certain, so that an offset that swings around
  // the bound raises only one alarm.
  if (distance + uncertainty <= kClockOffsetMax) {
    is_far_ = false;
    correction_ns_.store(0, std::memory_order_relaxed);
  }
  if (distance - uncertainty <= kClockOffsetMax && !is_far_) return std::nullopt;
  // A measurement that agrees with the correction does not change it, because time would become
  // uneven.
  if (std::chrono::abs(offset - correction()) - uncertainty > kClockOffsetMax)
    correction_ns_.store(offset.count(), std::memory_order_relaxed);
  if (std::exchange(is_far_, true)) return std::nullopt;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(distance).count();
  return "the clock of this machine is " + std::to_string(ms) + " ms " +
         (offset > base::Duration(0) ? "ahead of" : "behind") +
         " that of the store; decisions are corrected by this, as well as it can be measured; let "
         "NTP set the clocks of all machines";
}

std::optional<base::Duration> ClockOffset::last() const {
  const int64_t ns = last_ns_.load(std::memory_order_relaxed);
  return ns == kUnknown ? std::nullopt : std::optional<base::Duration>(base::Duration(ns));
}

}  // namespace headgate::store::cas
