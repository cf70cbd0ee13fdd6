// Limits the number of calls in progress on one connection to a store, according to how many the
// store answers in time.
//
//   starts    at 512, the calls of one turn: a server without known problems gets them in one write
//   grows     while calls wait for room and answers take at most half of their time:
//             doubling at first, later by one per window of answers
//             (TCP's slow start and additive increase)
//   shrinks   by half when a call times out; only once for all calls sent before that was known
//
// Waiting calls are sent only if they can be answered in time, judging by the average time of
// answers.
//
// Pure: takes events and the time. Not thread-safe; one per connection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"

namespace headgate::store {

class CallWindow {
 public:
  static constexpr uint32_t kFirst = 512;
  static constexpr uint32_t kLeast = 4;

  explicit CallWindow(uint32_t most)
      : most_(std::max(most, 1u)), size_(std::min(kFirst, most_)), slow_start_below_(most_) {}

  uint32_t size() const { return size_; }

  // An answer arrived `took` after its call was sent. `allowed` was the call's timeout. `wanted`:
  // whether calls are waiting for room.
  void OnAnswer(base::Duration took, base::Duration allowed, bool wanted) {
    average_ += (took - average_) / kAveragedOver;
    if (!wanted || took > allowed / 2 || size_ >= most_) return;
    if (size_ >= slow_start_below_ && ++answered_ < size_) return;
    answered_ = 0;
    ++size_;
  }

  // A call that was sent at `sent` timed out.
  void OnTimeout(base::BootTime sent, base::BootTime now) {
    if (sent < shrunk_at_) return;
    shrunk_at_ = now;
    size_ = std::max(size_ / 2, std::min(kLeast, most_));
    slow_start_below_ = size_;
    answered_ = 0;
  }

  // Starts over for a new connection, whose server may be a different one.
  void Reset() { *this = CallWindow(most_); }

  // Whether a call that is sent now will probably be answered by its deadline.
  bool MakesIt(base::BootTime deadline, base::BootTime now) const {
    return deadline - now > average_;
  }

 private:
  static constexpr int kAveragedOver = 16;

  uint32_t most_;
  uint32_t size_;
  uint32_t slow_start_below_;
  uint32_t answered_ = 0;  // since the last growth
  base::Duration average_{0};
  base::BootTime shrunk_at_{0};
};

}  // namespace headgate::store
