// How long a request counts as load for the workers of an upstream: up to 32 times the base
// latency, or four times as long as the upstream needs for a full limit of requests, and at least
// 250 ms. A request that takes longer waits for something else, as a long poll does, and no longer
// counts as in flight.
//
// Requests of a busy upstream take up to about five times the base latency, and a tenth of them may
// need ten times as long as the others. If fewer than one of eight answers come in time, the base
// latency is no longer right, so the time doubles. It halves again if more than a quarter take less
// than half of it.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::capacity {

class Patience {
 public:
  static constexpr int64_t kTimesBase = 32;
  static constexpr int64_t kTimesLimit = 4;
  static constexpr base::Duration kLeast = std::chrono::milliseconds(250);
  static constexpr base::Duration kMost = std::chrono::minutes(1);
  // Used while base latency or rate is unknown: a request in a burst may wait for a second, and
  // some wait longer.
  static constexpr base::Duration kNoRate = std::chrono::seconds(2);
  static constexpr base::Duration kNoBase = std::chrono::seconds(10);

  // The base latency of the upstream as far as it is known, and its time for a full limit of
  // requests. 0 if it is not known.
  void SetKnown(base::Duration latency_base, base::Duration limit_time) {
    work_time_ = limit_time.count() > 0     ? std::min(limit_time, kMost)
                 : latency_base.count() > 0 ? std::min(latency_base * kTimesLimit, kMost)
                                            : kLeast;
    first_ = latency_base.count() == 0 ? kNoBase
             : limit_time.count() == 0
                 ? std::max(std::min(latency_base, kMost) * kTimesBase, kNoRate)
                 : std::max({std::min(latency_base, kMost) * kTimesBase,
                             std::min(limit_time, kMost) * kTimesLimit, kLeast});
  }
  // The time that the upstream needs for a full limit of requests; while the rate is not known,
  // four times the base latency.
  base::Duration work_time() const { return work_time_; }
  base::Duration value() const { return std::min(kMost, first_ * (int64_t{1} << doublings_)); }

  // An answer has come, in time or not.
  void OnAnswer(base::Duration latency) {
    const base::Duration most = value();
    in_time_ += latency <= most;
    fast_ += latency <= most / 2;
    if (++answers_ < kAnswers) return;
    if (8 * in_time_ < kAnswers) doublings_ = std::min(doublings_ + 1, kDoublings);
    if (4 * fast_ > kAnswers && doublings_ > 0) --doublings_;
    answers_ = in_time_ = fast_ = 0;
  }

 private:
  static constexpr uint32_t kAnswers = 32;   // are judged together
  static constexpr uint32_t kDoublings = 8;  // 250 ms become a minute

  base::Duration first_ = kNoBase;
  base::Duration work_time_ = kLeast;
  uint32_t doublings_ = 0;
  // The present answers.
  uint32_t answers_ = 0;
  uint32_t in_time_ = 0;
  uint32_t fast_ = 0;
};

}  // namespace headgate::capacity
