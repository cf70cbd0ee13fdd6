// How often an instance asks the store for one key. Each event loop has a LeaseBook of its own; this is all they share.
//
//   budget   every ask for a key counts, of all loops. An instance that asks for a key more often than once per pause,
//            a few asks aside, and is given less than it wants, is asking for what others lack: it is overloaded.
//   turns    the loops take turns at asking for a key that has nothing left or is overloaded, one in each pause. The
//            loop whose turn it is asks for all of them: the store then shares out what is left by instances.
//
// So an overloaded key costs an instance the same however many loops it has, and each instance gets the same.
//
// A place tells keys apart by 16 bits. Keys for which there is no room forget what is known of them, the one whose turn
// was longest ago first; each loop then keeps its own pace. Thread-safe and lock-free: a loop comes here when it wants
// to ask, not for each request.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"

namespace headgate::limiter {

// Asks that may follow each other at once; a pause gives one back. A generic cell rate algorithm.
class AskBudget {
 public:
  static constexpr int64_t kAtOnce = 8;

  // An ask is made; returns when the budget is even again, which is later than `now` if it is overspent. `even_at` is
  // what the last call returned; any unit of time.
  static int64_t Spend(int64_t even_at, int64_t now, int64_t pause) {
    return std::max(even_at, now - kAtOnce * pause) + pause;
  }
};

class AskPace {
 public:
  struct Turn {
    base::BootTime at;  // the loop may ask if this is not later than now; otherwise it comes again then
  };

  // `loops` of the instance, at least 1.
  explicit AskPace(uint32_t loops = 1) : loops_(loops) {}

  // A loop asks for a key. Whether the instance has overspent its budget for the key. `now` is one clock for all loops,
  // `pause` the least time between two turns.
  bool Spend(const base::Hash128& key, base::BootTime now, base::Duration pause) {
    const int64_t now_us = MicrosOf(now), pause_us = pause.count() / 1000;
    Place& place = EnsurePlace(key);
    int64_t before = place.even_at.load(std::memory_order_relaxed);
    int64_t after;
    do {
      after = AskBudget::Spend(before, now_us, pause_us);
    } while (!place.even_at.compare_exchange_weak(before, after, std::memory_order_relaxed));
    return after > now_us;
  }

  // A loop wants to ask for a key whose loops take turns; it last asked at `last_ask`.
  Turn TakeTurn(const base::Hash128& key, base::BootTime now, base::Duration pause, base::BootTime last_ask) {
    const int64_t now_us = MicrosOf(now);
    Place& place = EnsurePlace(key);
    const uint64_t mine = Word(key, now_us);
    // A loop that had a turn since all could have had one lets the others go first.
    const bool yields = loops_ > 1 && now - last_ask < loops_ * pause;
    const int64_t pause_us = (pause + (yields ? pause / 4 : base::Duration(0))).count() / 1000;
    uint64_t last = place.last.load(std::memory_order_relaxed);
    do {
      if (!IsOfSameKey(last, mine)) continue;
      // What is ahead of this loop's look at the clock was a moment ago.
      const int64_t since = std::max<int64_t>(0, now_us - static_cast<int64_t>(last & kTimeMask));
      if (since < pause_us) return {.at = now + std::chrono::microseconds(pause_us - since + 1)};
    } while (!place.last.compare_exchange_weak(last, mine, std::memory_order_relaxed));
    return {.at = now};
  }

  // The same for a loop that cannot wait: the others wait for it.
  Turn TakeTurnNow(const base::Hash128& key, base::BootTime now) {
    EnsurePlace(key).last.store(Word(key, MicrosOf(now)), std::memory_order_relaxed);
    return {.at = now};
  }

 private:
  static constexpr size_t kSets = 1024;
  static constexpr size_t kWays = 4;
  static constexpr int kTimeBits = 48;  // of microseconds since the machine started, 8.9 years
  static constexpr uint64_t kTimeMask = (uint64_t{1} << kTimeBits) - 1;

  struct alignas(16) Place {
    std::atomic<uint64_t> last{0};    // 16 bits of the key, and when it last had a turn
    std::atomic<int64_t> even_at{0};  // of the budget
  };

  static int64_t MicrosOf(base::BootTime now) { return now.ns / 1000; }
  static uint64_t Word(const base::Hash128& key, int64_t at_us) {
    return (key.low >> kTimeBits << kTimeBits) | (static_cast<uint64_t>(at_us) & kTimeMask);
  }
  static bool IsOfSameKey(uint64_t a, uint64_t b) { return a >> kTimeBits == b >> kTimeBits; }

  // The key's place; if it has none, that of the key whose turn was longest ago, as of one that never had a turn.
  Place& EnsurePlace(const base::Hash128& key) {
    std::array<Place, kWays>& set = sets_[key.high % kSets];
    const uint64_t fresh = Word(key, 0);
    Place* oldest = nullptr;
    uint64_t oldest_last = 0;
    for (Place& place : set) {
      const uint64_t last = place.last.load(std::memory_order_relaxed);
      if (IsOfSameKey(last, fresh)) return place;
      if (oldest == nullptr || (last & kTimeMask) < (oldest_last & kTimeMask)) {
        oldest = &place;
        oldest_last = last;
      }
    }
    // Of several loops that come at once the first begins anew.
    if (oldest->last.compare_exchange_strong(oldest_last, fresh, std::memory_order_relaxed)) {
      oldest->even_at.store(0, std::memory_order_relaxed);
    }
    return *oldest;
  }

  const int64_t loops_;
  std::array<std::array<Place, kWays>, kSets> sets_{};
};

}  // namespace headgate::limiter
