// The offset between the clock of this instance and the clock of the service, the common reference
// of all instances.
//
// A clock that is too far away for certain is corrected by its offset: decisions, and the waits in
// answers, then follow the service's clock. The bound of a strict bucket grows by rate × the
// largest difference of two writers' times (README.md, Time). A lease has a margin of 5 % of 2 s,
// of which 2 % cover the drift of two clocks. The rest, 60 ms, is the largest difference that two
// instances may have, so each may be half of that away from the service's clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "headgate/base/time.h"

namespace headgate::store::cas {

inline constexpr base::Duration kClockOffsetMax = std::chrono::milliseconds(30);

class ClockOffset {
 public:
  // Takes a measurement: this clock is `offset` ahead, at most `uncertainty` wrong. If this clock
  // is certainly too far away, it is corrected until it is near again, and the first such call
  // returns the text of an alarm.
  std::optional<std::string> OnMeasured(base::Duration offset, base::Duration uncertainty);

  // As last measured; nothing before. From any thread.
  std::optional<base::Duration> last() const;
  // Subtract it from this clock to get the time for decisions. From any thread.
  base::Duration correction() const {
    return base::Duration(correction_ns_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  std::atomic<int64_t> last_ns_{kUnknown};
  std::atomic<int64_t> correction_ns_{0};
  bool is_far_ = false;
};

}  // namespace headgate::store::cas
