// The words of concurrency limits. A permit is a place among the requests of one key that may be in
// flight at the same time. It has an id, and an end in case nobody releases it.
//
//   acquire a, at most 2, for 30 s    → granted, 1 in flight
//   acquire b                         → granted, 2 in flight
//   acquire c                         → full, the earliest end is in 30 s
//   release a                         → released, 1 in flight
//   acquire c                         → granted, 2 in flight
//
// Permits are not buckets: nothing refills, and each permit is given back separately.
#pragma once

#include <chrono>
#include <cstdint>

#include "headgate/base/hash.h"
#include "headgate/base/time.h"

namespace headgate::permit {

// 128 random bits, or a hash of the id that a client chose.
using Id = base::Hash128;

// The most permits of one key: with their ids and ends, 10,000 take 240 KB.
inline constexpr uint32_t kPermitsPerKeyMax = 10'000;
// The bounds of the time after which a permit that nobody releases ends.
inline constexpr base::Duration kTtlMin = std::chrono::seconds(1);
inline constexpr base::Duration kTtlMax = std::chrono::hours(24);

// One request about the permits of a key.
struct Ask {
  enum class Kind : uint8_t {
    kAcquire,
    kRelease,
    kPeek,   // as kAcquire with an id that holds nothing, but changes nothing
    kClear,  // releases all permits of the key
  };
  Kind kind = Kind::kAcquire;
  Id id{};                // only to acquire and to release
  uint32_t max = 0;       // at most this many in flight; only to acquire and to peek
  base::Duration ttl{0};  // only to acquire
};

struct Answer {
  enum class Outcome : uint8_t {
    kGranted,   // also the answer to a peek that finds room
    kHeld,      // the id holds a permit already: its end is renewed, nothing else changes
    kFull,      // as many are in flight as may be
    kReleased,  // the id has given back its permit; all are cleared
    kUnknown,   // nothing to release: the permit has ended, was released, or never was
    kNoRoom,    // this process keeps as many permits or keys as it may
  };
  Outcome outcome = Outcome::kFull;
  uint32_t in_flight = 0;             // afterwards
  base::Duration first_end_after{0};  // until the earliest end of a permit; 0 if there is none
  base::Duration last_end_after{0};   // and the latest
  uint32_t expired = 0;               // permits that were found to have ended without a release

  // Whether the asker may pass.
  bool passes() const { return outcome == Outcome::kGranted || outcome == Outcome::kHeld; }
  bool operator==(const Answer&) const = default;
};

}  // namespace headgate::permit
