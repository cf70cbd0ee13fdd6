// A cache of the limits that recent requests carried. CL.THROTTLE carries its limit in every
// request, and most requests carry the same few limits.
//
// One per loop, of fixed size, direct-mapped. A cached limit stays pinned in the store's table.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "headgate/store/limit_table.h"

namespace headgate::front::resp {

// A limit as CL.THROTTLE and GCRA state it: up to max_burst + 1 at once, and `count` more per
// period.
struct ThrottleLimit {
  int64_t max_burst = 0;
  int64_t count = 0;
  int64_t period_s = 0;
  int64_t period_ns = 0;  // in addition to the seconds; below a second

  bool operator==(const ThrottleLimit&) const = default;
};

class LimitCache {
 public:
  // Null if the limit is not cached.
  const store::LimitEntry* Find(const ThrottleLimit& limit) const {
    const Slot& slot = slots_[IndexOf(limit)];
    return slot.limit == limit ? slot.entry.get() : nullptr;
  }

  // May replace another limit: entries that were found before must no longer be in use.
  const store::LimitEntry* Put(const ThrottleLimit& limit, store::LimitHandle entry) {
    Slot& slot = slots_[IndexOf(limit)];
    slot.limit = limit;
    slot.entry = std::move(entry);
    return slot.entry.get();
  }

 private:
  static constexpr int kIndexBits = 10;

  struct Slot {
    ThrottleLimit limit;
    store::LimitHandle entry;
  };

  // Multiplication by odd numbers spreads small differences into the upper bits (Fibonacci
  // hashing).
  static size_t IndexOf(const ThrottleLimit& limit) {
    uint64_t h = static_cast<uint64_t>(limit.max_burst) * 0x9e3779b97f4a7c15u;
    h = (h ^ static_cast<uint64_t>(limit.count)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ static_cast<uint64_t>(limit.period_s + limit.period_ns)) *
        0x94d049bb133111ebu;
    return static_cast<size_t>(h >> (64 - kIndexBits));
  }

  std::array<Slot, size_t{1} << kIndexBits> slots_;
};

}  // namespace headgate::front::resp
