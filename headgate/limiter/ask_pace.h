// The event loops of an instance ask the store in turn for a key that is abused, so that what it costs does not grow
// with the number of cores. Each loop has a LeaseBook of its own; this is all that they share.
//
// A key is abused where far more is denied than is granted, by all loops together. Below that each asks for itself: who
// waits for a turn lacks what others hold and have not spent yet.
//
// Keys that share a place are told apart by 16 bits; of two that are exhausted at once each forgets what is known of
// the other: then each loop keeps its own pace, which is never wrong. From any thread, without locks: a loop comes here
// once for each pause and key, not for each request.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"

namespace headgate::limiter {

class AskPace {
 public:
  // What a loop has seen of a key since it last came here.
  struct Seen {
    uint64_t denied = 0;
    uint64_t granted = 0;
  };
  struct Turn {
    base::BootTime at;      // may ask where it is not later than now; otherwise asks again then
    bool in_turns = false;  // for all loops, then
  };

  // A loop wants to ask for a key that has nothing left. `now` is one clock for all who call.
  Turn TakeTurn(const base::Hash128& key, base::BootTime now, base::Duration pause, const Seen& seen) {
    Place& place = places_[key.high % kPlaces];
    const uint64_t now_us = static_cast<uint64_t>(now.ns / 1000) & kTimeMask;
    const uint64_t mine = (key.low >> kTimeBits << kTimeBits) | now_us;
    uint64_t last = place.last.load(std::memory_order_relaxed);
    if (!IsOfSameKey(last, mine)) {
      place.last.store(mine, std::memory_order_relaxed);
      place.seen.store(Packed(seen.denied, seen.granted), std::memory_order_relaxed);
      return {.at = now};
    }
    if (!IsAbused(place, seen, now_us)) {
      place.last.store(mine, std::memory_order_relaxed);
      return {.at = now};
    }
    const auto pause_us = static_cast<uint64_t>(pause.count() / 1000);
    do {
      const uint64_t since = (mine - last) & kTimeMask;
      // What is ahead of this loop's look at the clock was a moment ago.
      const bool ahead = since > kTimeMask / 2;
      if (IsOfSameKey(last, mine) && (ahead || since < pause_us)) {
        return {.at = now + std::chrono::microseconds((ahead ? pause_us : pause_us - since) + 1), .in_turns = true};
      }
    } while (!place.last.compare_exchange_weak(last, mine, std::memory_order_relaxed));
    return {.at = now, .in_turns = true};
  }

 private:
  static constexpr size_t kPlaces = 4096;
  static constexpr int kTimeBits = 48;  // of microseconds, 8.9 years
  static constexpr uint64_t kTimeMask = (uint64_t{1} << kTimeBits) - 1;
  static constexpr int kPeriodBits = 20;  // about a second
  static constexpr uint64_t kCountMax = std::numeric_limits<uint32_t>::max();
  // Abused: so many times as much is denied as is granted, and some.
  static constexpr uint64_t kAbusedTimes = 4;
  static constexpr uint64_t kAbusedLeast = 16;

  struct alignas(32) Place {
    std::atomic<uint64_t> last{0};    // 16 bits of the key, and when somebody asked for it
    std::atomic<uint64_t> seen{0};    // by all loops: denied and granted, 32 bits each
    std::atomic<uint64_t> period{0};  // in which that was last halved
  };

  static bool IsOfSameKey(uint64_t a, uint64_t b) { return a >> kTimeBits == b >> kTimeBits; }
  static uint64_t Packed(uint64_t denied, uint64_t granted) {
    return std::min(denied, kCountMax) << 32 | std::min(granted, kCountMax);
  }

  static bool IsAbused(Place& place, const Seen& seen, uint64_t now_us) {
    const uint64_t period = now_us >> kPeriodBits;
    const uint64_t periods = period - std::min(period, place.period.exchange(period, std::memory_order_relaxed));
    uint64_t before = place.seen.load(std::memory_order_relaxed);
    uint64_t denied, granted;
    do {
      denied = ((before >> 32) >> std::min<uint64_t>(periods, 32)) + seen.denied;
      granted = ((before & kCountMax) >> std::min<uint64_t>(periods, 32)) + seen.granted;
    } while (!place.seen.compare_exchange_weak(before, Packed(denied, granted), std::memory_order_relaxed));
    return denied > kAbusedTimes * granted + kAbusedLeast;
  }

  std::array<Place, kPlaces> places_{};
};

}  // namespace headgate::limiter
