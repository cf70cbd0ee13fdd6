// Sends more than the pool admits now and then, to see whether the upstream has grown.
//
// A pool that admits the capacity never makes the limit bind, so growth would stay unnoticed. While
// the pool refuses requests, a window in eight sends one and a half times the capacity. If the
// answers follow, the next window sends twice the capacity.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/capacity/load_window.h"

namespace headgate::capacity {

class PoolProbe {
 public:
  // The result of a window that sent more requests.
  enum class Result : uint8_t {
    kFollowed,     // the answers have become more: send still more
    kLimitTooLow,  // the limit was reached before the upstream was saturated: repeat with a larger
                   // limit
    kOver,         // the upstream is saturated, or the clients did not send more
  };

  // The usual length of a window.
  explicit PoolProbe(base::Duration window) : every_(window * kWindows) {}

  // Whether a request above the pool is sent now, if the capacity is `rate`, in thousandths per
  // second and more than 0. It counts as sent.
  bool Takes(uint64_t rate, base::Instant now) {
    if (step_ == 0 || now < next_) return false;
    const uint64_t extra = std::max<uint64_t>(1, rate * step_ / 4);
    next_ = std::max(next_, now - kBurst) +
            base::Duration(static_cast<int64_t>(kMilliNanosPerSecond / extra));
    return true;
  }

  // A window is over; decides for the next one.
  void OnWindow(const LoadWindow& window, Result result) {
    if (step_ > 0) {
      time_ = base::Duration(0);
      if (result == Result::kFollowed) step_ = std::min(step_ * 2, kStepMax);
      if (result == Result::kOver) step_ = 0;
      return;
    }
    if (window.IsRefusedByPool()) time_ += window.Elapsed();
    if (time_ < every_) return;
    step_ = kStepFirst;
    time_ = base::Duration(0);
  }
  // The upstream has fallen, or fails.
  void Stop() { step_ = 0; }

 private:
  // A probe is due when the windows in which the pool refused have taken as long as this many usual
  // windows. Time counts, not windows: a small upstream has longer windows, and its growth would
  // otherwise be noticed only after a minute.
  static constexpr int kWindows = 7;
  // 1.5 times the capacity at first, which saturates an upstream that cannot do more, then twice.
  static constexpr uint32_t kStepFirst = 2;
  static constexpr uint32_t kStepMax = 4;
  // Requests of a probe may come this early. A pool refuses only in the last part of each cycle, so
  // a probe may then send at once what it could not send before.
  static constexpr base::Duration kBurst = std::chrono::milliseconds(1000);

  base::Duration every_;
  base::Duration time_{0};  // of windows in which the pool refused, since the last probe
  uint32_t step_ = 0;  // the rate that is sent above the pool, in quarters of the capacity; 0: none
  base::Instant next_{0};
};

}  // namespace headgate::capacity
