// The permits of a process, by key. Bounded: beyond the bounds, keys and permits are refused, and
// counted.
//
// Thread-safe: the keys are spread over shards, each with a lock of its own. A key that holds no
// permit takes no room. One whose permits have all ended, because nobody released them, keeps its
// room until its shard is swept: when it is asked for again, or when the shard has doubled or is
// full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/permit/permit_set.h"

namespace headgate::permit {

struct PermitTableOptions {
  // A key with one permit takes about 100 bytes, and each further permit 24. Raise them if
  // `headgate_permits_no_room_total` grows.
  size_t keys_max = 100'000;
  size_t permits_max = 1'000'000;
};

class PermitTable {
 public:
  explicit PermitTable(const PermitTableOptions& options = {});

  // As PermitSet::Do.
  Answer Do(const base::Hash128& key, const Ask& ask, base::Instant now);

  // The number of permits that have not ended. Looks at every key.
  uint64_t CountAt(base::Instant now) const;
  // Asks that were refused because there was no room.
  uint64_t refused() const;

 private:
  static constexpr size_t kShards = 64;

  struct HashOf {
    size_t operator()(const base::Hash128& key) const { return key.low; }
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    // All guarded by the mutex.
    absl::flat_hash_map<base::Hash128, PermitSet, HashOf> keys;
    size_t permits = 0;   // including those that have ended and are still here
    size_t sweep_at = 0;  // at this many keys
    base::Instant swept_full_at{0};
    uint64_t refused = 0;
  };

  Shard& ShardOf(const base::Hash128& key) { return shards_[key.high % kShards]; }
  bool MakeRoom(Shard& shard, base::Instant now, uint32_t& expired) const;
  static uint32_t Sweep(Shard& shard, base::Instant now);

  const size_t keys_max_;  // of one shard
  const size_t permits_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace headgate::permit
