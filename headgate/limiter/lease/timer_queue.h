// A timer queue whose entries share one delay, so they fall due in FIFO order.
#pragma once

#include <cstdint>
#include <deque>

#include "headgate/base/clock.h"

namespace headgate::limiter::lease {

class TimerQueue {
 public:
  struct Entry {
    uint32_t index;
    base::BootTime at;
  };

  explicit TimerQueue(base::Duration delay) : delay_(delay) {}

  // `now` may go back a little, because event loops read it before they take a lock. A look is then
  // late by this difference.
  void Add(uint32_t index, base::BootTime now) { entries_.push_back({index, now + delay_}); }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  base::BootTime DueOf(base::BootTime now) const { return now + delay_; }
  // For a queue that is not empty: the time at which its first entry is due, and the entry.
  base::BootTime due() const { return entries_.front().at; }
  Entry Take() {
    const Entry entry = entries_.front();
    entries_.pop_front();
    return entry;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  const base::Duration delay_;
  std::deque<Entry> entries_;
};

}  // namespace headgate::limiter::lease
