// The limit of requests in flight for clients that send their requests together.
//
// If the limit lets a whole burst through, all of it is answered, but the last answers are late. So
// the limit grows as long as bursts meet it while the upstream is idle in between, to the size at
// which the last answer of a burst takes a second; it doubles at most. After a rest of 30 windows
// the half is tried, and the limit continues to fall if that costs no answers: otherwise a steady
// storm would wait in a long queue.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "headgate/base/time.h"
#include "headgate/capacity/knee_limits.h"
#include "headgate/capacity/load_window.h"

namespace headgate::capacity {

class BurstLimit {
 public:
  // The last answer of a burst may take this long. The time grows with the limit.
  static constexpr base::Duration kLatencyMax = std::chrono::seconds(1);
  // For this many windows, bursts are known to need the limit.
  static constexpr uint32_t kRest = 30;

  // The state at the end of a window.
  struct Known {
    uint64_t rate;        // of the window
    uint64_t knee_milli;  // of the upstream
    bool has_capacity;    // otherwise the limit only rises
    uint32_t limit;       // in force
    uint32_t limit_most;
  };
  // The limit after a window; the present limit if there are no bursts.
  uint64_t After(const LoadWindow& window, const Known& known) {
    const uint32_t before = std::exchange(halved_from_, 0);
    if (before > 0 && known.rate * 8 < halved_rate_ * 7) {
      windows_ = 0;
      rest_ = kRest;
      return std::min(before, known.limit_most);
    }
    windows_ = window.IsInBursts() ? windows_ + 1 : 0;
    uint64_t limit = known.limit;
    // One window may hold the end of a storm.
    if (const uint64_t quarters = windows_ < 2 ? 0 : QuartersMore(window); quarters > 0) {
      limit = std::min<uint64_t>(limit + limit * quarters / 4, known.limit_most);
      rest_ = kRest;
      is_raised_ = true;
    }
    is_raised_ &= limit > LimitHigh(known.knee_milli);
    if (!known.has_capacity || !is_raised_) return limit;
    if (rest_ > 0 && --rest_ > 0) return limit;
    if (before == 0) halved_rate_ = known.rate;
    halved_from_ = static_cast<uint32_t>(limit);
    return std::max(limit / 2, LimitFor(known.knee_milli));
  }
  // Whether the limit is higher than the upstream needs if requests come evenly.
  bool is_raised() const { return is_raised_; }

  // Whether the upstream was never idle in a window although the limit did not always bind. The
  // mark was chosen for the rate of the window before, so it may be too low for this one. Without a
  // refusal, the rate may just be the demand of the clients.
  static bool IsSaturated(const LoadWindow& window, uint64_t knee_milli) {
    return window.IsBusy() && (window.IsRefusedByLimit() || window.IsRefusedByPool()) &&
           knee_milli * 11 <= window.busy_mark() * kMilli * 10;
  }

 private:
  // How much the limit may grow, in quarters: 4 double it.
  static uint64_t QuartersMore(const LoadWindow& window) {
    uint64_t quarters = 4;
    while (quarters > 0 &&
           !window.TakesAtMost(kLatencyMax * 4 / static_cast<int64_t>(4 + quarters)))
      --quarters;
    return quarters;
  }

  uint32_t windows_ = 0;  // in a row, in which requests came in bursts
  uint32_t rest_ = 0;     // windows until the half is tried
  bool is_raised_ = false;
  // The limit before it was halved to see whether bursts still need it; 0 if it was not halved.
  uint32_t halved_from_ = 0;
  uint64_t halved_rate_ = 0;
};

}  // namespace headgate::capacity
