// How many calls one connection to a store may have under way: as many as the store is seen to
// answer in time.
//
//   begins    with the calls of one turn, 512: a server that has shown nothing bad gets them in one
//   write grows     while calls wait for room and answers come within half of their time: doubling
//   at first, later by one for
//             each window of answers (TCP's slow start and additive increase)
//   shrinks   by half when a call runs out of time, once for all calls that were sent before that
//   was known
//
// What waits for room is sent only if it can be answered in time, by how long answers take on
// average.
//
// Pure: events and the time come in. Not thread-safe; one per connection.
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

  // An answer came `took` after its call was sent, which had `allowed` for it; `wanted`: calls wait
  // for room.
  void OnAnswer(base::Duration took, base::Duration allowed, bool wanted) {
    average_ += (took - average_) / kAveragedOver;
    if (!wanted || took > allowed / 2 || size_ >= most_) return;
    if (size_ >= slow_start_below_ && ++answered_ < size_) return;
    answered_ = 0;
    ++size_;
  }

  // A call that was sent at `sent` ran out of time.
  void OnTimeout(base::BootTime sent, base::BootTime now) {
    if (sent < shrunk_at_) return;
    shrunk_at_ = now;
    size_ = std::max(size_ / 2, std::min(kLeast, most_));
    slow_start_below_ = size_;
    answered_ = 0;
  }

  // A connection begins anew: the server may be another.
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
  uint32_t answered_ = 0;  // since it last grew
  base::Duration average_{0};
  base::BootTime shrunk_at_{0};
};

}  // namespace headgate::store
