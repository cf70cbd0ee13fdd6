// The requests of one loop that wait for a time: their turn in the queue of a rule. In the order of
// their times, and of their arrival if these are equal.
//
// A request that waits for an answer of the shared store has no due time, but is registered here
// too, because every request must be answered when the process shuts down and the queue ends.
//
// Timeouts have the coarse wheel (tick_wheel.h). A queue that lets 50 requests per second through
// needs its times exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "headgate/base/time.h"

namespace headgate::proxy {

class HeldRequests {
 public:
  // Leaves on destruction. The queue must outlive it.
  class Entry {
   public:
    Entry() = default;
    virtual ~Entry() { Leave(); }
    Entry(const Entry&) = delete;

    bool is_held() const { return queue_ != nullptr; }

   protected:
    void Leave() {
      if (queue_ != nullptr) queue_->Release(*this);
    }

   private:
    friend class HeldRequests;
    // The entry's time has come, and it is not held any more. It may be held again, and may destroy
    // itself and others.
    virtual void OnDue(base::Instant now) = 0;
    // The queue ends before the entry's time has come. The entry may not be held again.
    virtual void OnQueueEnded(base::Instant now) { OnDue(now); }

    HeldRequests* queue_ = nullptr;
    base::Instant due_{0};
    uint64_t number_ = 0;
  };

  // `wake` is called with the time of the first entry whenever this time becomes earlier.
  HeldRequests(size_t entries_max, std::function<void(base::Instant)> wake)
      : entries_max_(entries_max), wake_(std::move(wake)) {}
  HeldRequests(const HeldRequests&) = delete;

  // Ask this before holding a new entry. An entry that was held before may always be held again.
  // Entries that are due at once, because the shared store has answered, do not count.
  bool full() const { return waits_for_time_ >= entries_max_; }
  // Whether the queue could be full once the shared store has answered all registered requests.
  bool may_fill() const { return entries_.size() + awaiting_.size() >= entries_max_; }
  bool ends_before(base::Instant due) const { return due > end_; }
  base::Instant end() const { return end_; }
  // An earlier time is replaced.
  void Hold(Entry& entry, base::Instant due);
  // Registers an entry without a due time, and without counting it against the bound, until Hold or
  // until the queue ends.
  void Await(Entry& entry);
  void Release(Entry& entry);
  // Calls all entries that are due, then `wake` for the first one of the others.
  void Advance(base::Instant now);
  // Makes all entries due, in their order. Advance calls them.
  void LetGo();
  // No entry waits beyond `end`. Advance ends entries that are due later (OnQueueEnded) at once,
  // and entries without a time (Await) when `end` has come, in any order.
  void EndAt(base::Instant end);

 private:
  struct Before {
    bool operator()(const Entry* a, const Entry* b) const {
      return a->due_ != b->due_ ? a->due_ < b->due_ : a->number_ < b->number_;
    }
  };

  static bool WaitsForTime(const Entry& entry) {
    return entry.due_ > base::Instant{0} && entry.due_ < base::kInstantMax;
  }
  base::Instant NextTime() const;
  void Insert(Entry& entry, base::Instant due);

  const size_t entries_max_;
  const std::function<void(base::Instant)> wake_;
  std::set<Entry*, Before> entries_;
  std::set<Entry*, Before> awaiting_;  // without a time
  size_t waits_for_time_ = 0;
  base::Instant end_ = base::kInstantMax;
  uint64_t last_number_ = 0;
  bool in_advance_ = false;
};

}  // namespace headgate::proxy
