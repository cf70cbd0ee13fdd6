// The demand for one key: requests and their costs, per interval. Uses integers: at the end of each
// interval the average is halved and the interval's demand added, so a key is forgotten after a
// few.
//
//   in the interval    |   8   |   4   |   0   |   0   |
//   expected           0 ..... 8 ..... 6 ..... 3 ..... 2
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "headgate/base/clock.h"

namespace headgate::limiter {

class Demand {
 public:
  void Add(uint64_t cost, base::Duration interval, base::BootTime now) {
    if (now >= interval_end_) [[unlikely]]
      Roll(interval, now);
    cost_now_ += static_cast<uint32_t>(std::min<uint64_t>(cost, kMax - cost_now_));
    requests_now_ += requests_now_ < kMax ? 1 : 0;
  }

  // The expected demand per interval, from the last intervals and the present one: a burst counts
  // at once.
  uint64_t cost() const { return std::max(cost_average_, cost_now_); }
  uint64_t requests() const { return std::max(requests_average_, requests_now_); }

 private:
  void Roll(base::Duration interval, base::BootTime now) {
    // The very first request begins the first interval.
    const int64_t ended = interval_end_.ns == 0 ? 64 : 1 + (now - interval_end_) / interval;
    const auto halvings = static_cast<int>(std::min<int64_t>(ended - 1, 63));
    cost_average_ = static_cast<uint32_t>(Average(cost_average_, cost_now_) >> halvings);
    requests_average_ =
        static_cast<uint32_t>(Average(requests_average_, requests_now_) >> halvings);
    cost_now_ = requests_now_ = 0;
    interval_end_ = ended == 64 ? now + interval : interval_end_ + ended * interval;
  }

  static uint64_t Average(uint64_t before, uint64_t last) {
    return before == 0 ? last : (before + last + 1) / 2;
  }

  static constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();

  base::BootTime interval_end_{0};
  // Saturates instead of overflowing.
  uint32_t cost_now_ = 0;
  uint32_t cost_average_ = 0;
  uint32_t requests_now_ = 0;
  uint32_t requests_average_ = 0;
};

}  // namespace headgate::limiter
