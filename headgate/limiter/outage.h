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
  // The store said what is left, and that the bucket is full again at `full_at` if nothing comes. A grant does not say
  // when: then what was said before holds, or `full_at` is nothing.
  void OnAnswer(const base::Hash128& key, uint64_t remaining, std::optional<base::BootTime> full_at) {
    Place& place = PlaceOf(key);
    const bool same = place.key == key;
    place = {.key = key,
             .remaining = remaining,
             .full_at = full_at.value_or(same && place.known ? place.full_at : base::BootTime{INT64_MAX}),
             .known = true};
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
