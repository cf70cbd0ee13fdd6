// What a node knows of shared buckets when their store stops answering: how much was left of each, so that the local
// stand-in of a bucket begins with a share of that and not with a full one. Bounded; what it does not know counts as a
// full bucket.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"

namespace headgate::limiter {

class LastRests {
 public:
  // The store said what is left. The bucket is full again at `full_at` if nothing comes.
  void OnAnswer(const base::Hash128& key, uint64_t remaining, base::BootTime full_at) {
    PlaceOf(key) = {.key = key, .remaining = remaining, .full_at = full_at, .known = true};
  }

  // What was left when the store last answered. Only for the first who asks after that, and not once the bucket has had
  // time to be full again.
  std::optional<uint64_t> Take(const base::Hash128& key, base::BootTime now) {
    Place& place = PlaceOf(key);
    if (!place.known || place.key != key) return std::nullopt;
    place.known = false;
    if (now >= place.full_at) return std::nullopt;
    return place.remaining;
  }

 private:
  static constexpr size_t kPlaces = 4096;

  struct Place {
    base::Hash128 key{};
    uint64_t remaining = 0;
    base::BootTime full_at{0};
    bool known = false;
  };

  Place& PlaceOf(const base::Hash128& key) { return places_[key.high % kPlaces]; }

  std::array<Place, kPlaces> places_{};  // the latest of those that share a place
};

}  // namespace headgate::limiter
