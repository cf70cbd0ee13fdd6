// Detects that requests wait for each other in an upstream of which nothing is known yet. They do
// if the fastest of the last 16 answers took one and a half times as long as the first 16 requests
// did on average.
//
// A queue delays every request, so the fastest answer shows it, even if latencies differ much.
// Until it does, more requests in flight do no harm, however many there are. Twelve of
// the first requests must have ended: the others may be long polls.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::capacity {

class ColdStart {
 public:
  static constexpr uint32_t kAnswers = 16;
  static constexpr uint32_t kFirst = 12;  // of the first 16

  void OnSent(base::Instant now) {
    if (sent_ == kAnswers) return;
    ++sent_;
    first_to_ = now;
  }
  // Returns whether the last 16 answers show a queue, if this is the last of them.
  bool OnAnswer(base::Instant sent_at, base::Instant now) {
    const base::Duration latency = now - sent_at;
    if (sent_at <= first_to_ && first_answers_ < kAnswers) {
      ++first_answers_;
      first_sum_ += latency;
    }
    fastest_ = count_ == 0 ? latency : std::min(fastest_, latency);
    if (++count_ < kAnswers) return false;
    count_ = 0;
    const bool has_queue = first_answers_ >= kFirst && fastest_ > this->latency() / 2 * 3;
    had_queue_ |= has_queue;
    return has_queue;
  }
  // At any time.
  bool had_queue() const { return had_queue_; }
  // The mean of the first requests; 0 if too few of them were answered.
  base::Duration latency() const {
    return first_answers_ < kFirst ? base::Duration(0) : first_sum_ / first_answers_;
  }

 private:
  uint32_t sent_ = 0;
  base::Instant first_to_{0};  // when the last of the first requests was sent
  uint32_t first_answers_ = 0;
  base::Duration first_sum_{0};
  bool had_queue_ = false;
  // The present 16 answers.
  uint32_t count_ = 0;
  base::Duration fastest_{0};
};

}  // namespace headgate::capacity
