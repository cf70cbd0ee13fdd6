// How far the clock of this instance is from that of the service, which all instances compare
// theirs with.
//
// The bound of a strict bucket grows by rate × the largest difference of two writers' clocks
// (README.md, Time). A lease has a margin of 5 % of 2 s, of which 2 % cover the drift of two
// clocks. The rest, 60 ms, is the largest difference that two instances may have, so each may be
// half of that away from the service's clock.
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
  // Takes a measurement: this clock is `offset` ahead, at most `uncertainty` wrong. Returns the
  // text of an alarm if it is too far away for certain, once until it is near again.
  std::optional<std::string> OnMeasured(base::Duration offset, base::Duration uncertainty);

  // As last measured; nothing before. From any thread.
  std::optional<base::Duration> last() const;

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  std::atomic<int64_t> last_ns_{kUnknown};
  bool alarmed_ = false;
};

}  // namespace headgate::store::cas
