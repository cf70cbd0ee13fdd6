// Notices within a few seconds that an upstream answers much less than it did.
//
// The windows of the controller are long, so that the capacity is exact. A fall need not be known
// exactly, but soon: until it is, the pool admits more than the upstream can do. So this class
// examines short windows, and believes a fall if three in a row have at most three quarters of the
// known rate. A pause of the upstream (garbage collection) spoils two of them at most, and with 100
// answers that come at random (Poisson) three are that low by luck once in 10^7 windows.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/capacity/load_window.h"

namespace headgate::capacity {

class FallWatch {
 public:
  static constexpr size_t kWindows = 3;

  // A window lasts at least `window`, and has at least `answers`, or more if latencies differ much.
  FallWatch(base::Duration window, uint64_t answers) : length_(window), answers_(answers) {}

  // Forgets everything that was counted before `now`.
  void Restart(base::Instant now) {
    window_ = LoadWindow(now);
    low_count_ = 0;
  }
  LoadWindow& window() { return window_; }

  // Ends the window if it is over. Returns true if the upstream has fallen, and then rates() says
  // how much it answers.
  bool HasFallen(uint64_t known_rate, base::Instant now) {
    if (window_.Elapsed() < length_ || window_.ended() < window_.AnswersNeeded(answers_))
      return false;
    const LoadWindow ended = window_;
    window_ = LoadWindow(now);
    const uint64_t rate = ended.RateMilli();
    const bool is_low = ended.IsSaturated() && !ended.IsFailing() && rate * 4 <= known_rate * 3;
    if (is_low) rates_[low_count_++] = rate;
    if (is_low && low_count_ < kWindows) return false;
    low_count_ = 0;
    return is_low;
  }
  const std::array<uint64_t, kWindows>& rates() const { return rates_; }

 private:
  base::Duration length_;
  uint64_t answers_;
  LoadWindow window_;
  std::array<uint64_t, kWindows> rates_{};  // in thousandths of an answer per second
  size_t low_count_ = 0;
};

}  // namespace headgate::capacity
