// What a node remembers so that an outage of the shared store mints nothing.
//
// While the store answers: what was last left in a bucket, so that its local stand-in begins with a share of that and
// not with a full one. While it does not: what was let through here, so that it is taken from the shared bucket
// afterwards. An outage of length D so adds at most one capacity + rate·D over the fleet. Both are bounded; what is
// forgotten counts as a full bucket, and as nothing owed.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/hash.h"

namespace headgate::limiter {

class Outage {
 public:
  // The store said what is left.
  void OnAnswer(const base::Hash128& key, uint64_t remaining) { PlaceOf(key) = {key, remaining, true}; }

  // What was left when the store last answered; only for the first who asks after that.
  std::optional<uint64_t> TakeLastRest(const base::Hash128& key) {
    Place& place = PlaceOf(key);
    if (!place.known || place.key != key) return std::nullopt;
    place.known = false;
    return place.remaining;
  }

  void OnLetThrough(const base::Hash128& key, algorithm::Cost cost) {
    if (debts_.size() < kDebtsMax || debts_.contains(key)) debts_[key] += cost;
  }

  void OnGivenBack(const base::Hash128& key, algorithm::Cost cost) {
    if (const auto found = debts_.find(key); found != debts_.end()) found->second -= std::min(found->second, cost);
  }

  bool Owes(const base::Hash128& key) const { return !debts_.empty() && debts_.contains(key); }
  // All of it, which is then no longer owed.
  algorithm::Cost TakeDebt(const base::Hash128& key) {
    const auto found = debts_.find(key);
    if (found == debts_.end()) return 0;
    const algorithm::Cost cost = found->second;
    debts_.erase(found);
    return cost;
  }

 private:
  static constexpr size_t kPlaces = 4096;
  static constexpr size_t kDebtsMax = 65'536;

  struct Place {
    base::Hash128 key{};
    uint64_t remaining = 0;
    bool known = false;
  };
  struct HashOfKey {
    size_t operator()(const base::Hash128& key) const { return static_cast<size_t>(key.low); }
  };

  Place& PlaceOf(const base::Hash128& key) { return places_[key.high % kPlaces]; }

  std::array<Place, kPlaces> places_{};  // the latest of those that share a place
  absl::flat_hash_map<base::Hash128, algorithm::Cost, HashOfKey> debts_;
};

}  // namespace headgate::limiter
