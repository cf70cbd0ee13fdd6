// The permits of a process, by key. Bounded: beyond the bounds, keys and permits are refused, and
// counted. A held permit is renewed even if the table is full.
//
// Thread-safe: the keys are spread over shards, each with a lock of its own; the bounds are those
// of all shards together. A key that holds no permit takes no room. A key whose permits have all
// ended without a release keeps its room until it is asked for again, or until its shard is swept,
// which happens when the shard has doubled or the table is full.
#pragma once

#include <array>
#include <atomic>
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

  // The number of permits that have not ended. Visits every key.
  uint64_t CountAt(base::Instant now) const;
  // Asks that were refused because there was no room.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 64;

  struct HashOf {
    size_t operator()(const base::Hash128& key) const { return key.low; }
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    // Guarded by the mutex.
    absl::flat_hash_map<base::Hash128, PermitSet, HashOf> keys;
    size_t sweep_at = 0;  // at this many keys
    // When it was last swept because the table was full.
    std::atomic<int64_t> swept_full_ns{0};
  };

  Shard& ShardOf(const base::Hash128& key) { return shards_[key.high % kShards]; }
  Answer DoInShard(Shard& shard, const base::Hash128& key, const Ask& ask, base::Instant now);
  bool HasRoom() const;
  uint32_t MakeRoom(size_t first_shard, base::Instant now);
  uint32_t Sweep(Shard& shard, base::Instant now);

  const size_t keys_max_;
  const size_t permits_max_;
  // In all shards, including ended permits that are still here. They are counted before they are
  // inserted, so they never exceed the bounds.
  std::atomic<size_t> keys_{0};
  std::atomic<size_t> permits_{0};
  std::atomic<uint64_t> refused_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace headgate::permit
