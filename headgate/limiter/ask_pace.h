// The event loops of an instance ask the store in turn for a key that has nothing left, so that what an abused key
// costs does not grow with the number of cores. Each loop has a LeaseBook of its own; this is all that they share.
//
// One word for each place; keys that share a place are told apart by 16 bits, and of two that are abused at once each
// forgets the other's turn: then each loop keeps its own pace, which is never wrong. From any thread, without locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"

namespace headgate::limiter {

class AskPace {
 public:
  // Takes the turn to ask for `key` where `pause` has gone by since somebody did: returns `now`. Otherwise returns when
  // the next turn is, which is later. In steps of a microsecond; `now` is one clock for all who call.
  base::BootTime TakeTurn(const base::Hash128& key, base::BootTime now, base::Duration pause) {
    std::atomic<uint64_t>& place = places_[key.high % kPlaces];
    const uint64_t print = key.low >> kTimeBits << kTimeBits;
    const uint64_t now_us = static_cast<uint64_t>(now.ns / 1000) & kTimeMask;
    const auto pause_us = static_cast<uint64_t>(pause.count() / 1000);
    uint64_t last = place.load(std::memory_order_relaxed);
    do {
      const uint64_t since = (now_us - last) & kTimeMask;
      // What is ahead of this loop's look at the clock was a moment ago.
      const bool ahead = since > kTimeMask / 2;
      if ((last & ~kTimeMask) == print && last != 0 && (ahead || since < pause_us)) {
        const uint64_t rest_us = ahead ? pause_us : pause_us - since;
        return now + std::chrono::microseconds(rest_us + 1);
      }
    } while (!place.compare_exchange_weak(last, print | now_us, std::memory_order_relaxed));
    return now;
  }

 private:
  static constexpr size_t kPlaces = 4096;
  static constexpr int kTimeBits = 48;  // 8.9 years
  static constexpr uint64_t kTimeMask = (uint64_t{1} << kTimeBits) - 1;

  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace headgate::limiter
