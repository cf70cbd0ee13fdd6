// The demand for one key, in intervals of 100 ms: what comes now, what came in the last few
// intervals, and what comes in the long run. Integers only; the averages have a fixed point.
//
//   in the interval    |   8   |   4   |   0   |   0   |
//   brief              0 ..... 8 ..... 6 ..... 3 ..... 1      half of the average, half of the last
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "headgate/algorithm/lease.h"
#include "headgate/base/clock.h"

namespace headgate::limiter::lease {

class Demand {
 public:
  static constexpr base::Duration kInterval = algorithm::kBrief;

  void Add(uint64_t cost, base::BootTime now) {
    AdvanceTo(now);
    cost_now_ += static_cast<uint32_t>(std::min<uint64_t>(cost, kCostMax - cost_now_));
    requests_now_ += requests_now_ < kCostMax ? 1 : 0;
  }

  // Nothing has come since the last Add.
  void AdvanceTo(base::BootTime now) {
    const auto interval = static_cast<uint32_t>(now.ns / kInterval.count());
    if (interval != interval_) [[unlikely]]
      Roll(interval);
  }

  // The cost to expect within one interval. A burst counts at once.
  uint64_t brief() const { return std::max<uint64_t>(brief_ / kOne, cost_now_); }
  // The cost, and the requests, to expect within `time`, which is a multiple of the interval.
  uint64_t CostIn(base::Duration time) const {
    const uint64_t each = std::max<uint64_t>({slow_cost_, brief_, cost_now_ * kOne});
    return (each * Intervals(time) + kOne - 1) / kOne;
  }
  uint64_t RequestsIn(base::Duration time) const {
    return std::max<uint64_t>(slow_requests_ * Intervals(time) / kOne, requests_now_);
  }

 private:
  static constexpr uint64_t kOne = 256;
  static constexpr uint32_t kCostMax = std::numeric_limits<uint32_t>::max() / kOne;
  // The slow averages follow a change within this many intervals.
  static constexpr uint32_t kSlow = 16;

  static uint64_t Intervals(base::Duration time) {
    return static_cast<uint64_t>(time.count() / kInterval.count());
  }

  // A new key has no past: its averages begin with the first interval.
  void Roll(uint32_t interval) {
    const uint32_t ended = interval - interval_;
    const auto cost = static_cast<uint32_t>(cost_now_ * kOne);
    const auto requests = static_cast<uint32_t>(requests_now_ * kOne);
    if (interval_ != 0) {
      const bool is_new = slow_requests_ == 0;
      brief_ = brief_ == 0 ? cost : brief_ / 2 + cost / 2;
      slow_cost_ = is_new ? cost : Followed(slow_cost_, cost);
      slow_requests_ = is_new ? requests : Followed(slow_requests_, requests);
      for (uint32_t i = 1; i < std::min(ended, 8 * kSlow); ++i) {
        brief_ /= 2;
        slow_cost_ = Followed(slow_cost_, 0);
        slow_requests_ = Followed(slow_requests_, 0);
      }
      if (ended >= 8 * kSlow) brief_ = slow_cost_ = slow_requests_ = 0;
    }
    cost_now_ = requests_now_ = 0;
    interval_ = interval;
  }
  static uint32_t Followed(uint32_t average, uint32_t last) {
    return average - average / kSlow + last / kSlow;
  }

  uint32_t interval_ = 0;
  uint32_t cost_now_ = 0;
  uint32_t requests_now_ = 0;
  uint32_t brief_ = 0;
  uint32_t slow_cost_ = 0;
  uint32_t slow_requests_ = 0;
};

}  // namespace headgate::limiter::lease
