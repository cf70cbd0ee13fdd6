// The memory store's storage for the hits of sliding_window_log: blocks of four hits, separate from
// the buckets' slots and bounded like them. The hits of a bucket are a doubly linked list of
// blocks, oldest first; the bucket's `edge` holds the two ends of the list.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/store/pages.h"
#include "headgate/store/spin_lock.h"

namespace headgate::store {

struct alignas(64) HitBlock {
  static constexpr uint32_t kHits = 4;

  int64_t at_ns[kHits];
  uint32_t cost[kHits];
  uint32_t older;
  uint32_t newer;  // in a free block: the next free block
  uint8_t begin;   // hits [begin, end) are in use
  uint8_t end;
  // Location of the bucket that owns these hits; in a free block, of its last owner. Read without
  // the bucket's lock, so it is only a hint.
  std::atomic<uint8_t> slot;
  std::atomic<uint32_t> segment;
};
static_assert(sizeof(HitBlock) == 64);

// Thread-safe: a lock guards the allocation of blocks. The contents of a block are guarded by the
// lock of its bucket.
class HitArena {
 public:
  static constexpr uint32_t kNone = 0;

  explicit HitArena(uint32_t blocks_max);
  HitArena(const HitArena&) = delete;
  HitArena& operator=(const HitArena&) = delete;

  // Returns kNone if all blocks are in use.
  uint32_t Take();
  void Give(uint32_t block);

  HitBlock& block(uint32_t index) { return blocks_[index]; }
  const HitBlock& block(uint32_t index) const { return blocks_[index]; }
  uint32_t blocks_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint32_t blocks_max() const { return blocks_max_; }

 private:
  const uint32_t blocks_max_;
  const Mapped<HitBlock> blocks_;  // resident only as far as it was used; block 0 is never used
  SpinLock lock_;
  uint32_t free_ = kNone;
  uint32_t untouched_ = 1;
  std::atomic<uint32_t> in_use_{0};
};

// The hits of one bucket as the algorithm sees them. `ends` is the bucket's `edge`: the oldest
// block in the lower half, the newest in the upper. `blocks` counts the blocks of the bucket's
// owner.
class ArenaHitLog final : public algorithm::HitLog {
 public:
  ArenaHitLog(HitArena& arena, uint64_t& ends, std::atomic<uint64_t>& blocks)
      : arena_(arena), ends_(ends), blocks_(blocks) {}

  bool empty() const override { return oldest() == HitArena::kNone; }
  size_t size() const override;
  algorithm::Hit Oldest() const override;
  algorithm::Hit Newest() const override;
  void DropOldest() override;
  void ReduceNewest(uint32_t cost) override;
  uint32_t ReduceAt(base::Instant at, uint64_t cost) override;
  bool Append(algorithm::Hit hit) override;
  void ForEach(Visitor visit) const override;

  // The number of blocks of these hits. Walks through all of them.
  uint64_t CountBlocks() const;
  // Records the bucket's location in the newest block, or in all blocks.
  void SetPlaceOfNewest(uint32_t segment, uint8_t slot);
  void SetPlace(uint32_t segment, uint8_t slot);

 private:
  uint32_t oldest() const { return static_cast<uint32_t>(ends_); }
  uint32_t newest() const { return static_cast<uint32_t>(ends_ >> 32); }
  void SetEnds(uint32_t oldest, uint32_t newest) { ends_ = uint64_t{newest} << 32 | oldest; }
  void DropNewest();
  void Unlink(uint32_t block);
  void Give(uint32_t block);

  HitArena& arena_;
  uint64_t& ends_;
  std::atomic<uint64_t>& blocks_;
};

inline bool IsLog(const algorithm::Limit& limit) {
  return limit.algorithm() == algorithm::Algorithm::kSlidingWindowLog;
}

}  // namespace headgate::store
