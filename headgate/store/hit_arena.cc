#include "headgate/store/hit_arena.h"

#include <algorithm>
#include <mutex>

#include "headgate/base/check.h"

namespace headgate::store {

using algorithm::Hit;
using base::Instant;

HitArena::HitArena(uint32_t blocks_max)
    : blocks_max_(blocks_max), blocks_(uint64_t{blocks_max} + 1, HugePages::kNo) {}

uint32_t HitArena::Take() {
  std::lock_guard lock(lock_);
  uint32_t index = free_;
  if (index != kNone) {
    free_ = blocks_[index].newer;
  } else if (untouched_ <= blocks_max_) {
    index = untouched_++;
  } else {
    return kNone;
  }
  in_use_.fetch_add(1, std::memory_order_relaxed);
  return index;
}

void HitArena::Give(uint32_t block) {
  std::lock_guard lock(lock_);
  blocks_[block].newer = free_;
  free_ = block;
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

Hit ArenaHitLog::Oldest() const {
  const HitBlock& block = arena_.block(oldest());
  return {Instant::FromNanos(block.at_ns[block.begin]), block.cost[block.begin]};
}

Hit ArenaHitLog::Newest() const {
  const HitBlock& block = arena_.block(newest());
  return {Instant::FromNanos(block.at_ns[block.end - 1]), block.cost[block.end - 1]};
}

void ArenaHitLog::DropOldest() {
  const uint32_t index = oldest();
  HitBlock& block = arena_.block(index);
  if (++block.begin == block.end) Unlink(index);
}

// Removes a block without hits.
void ArenaHitLog::Unlink(uint32_t index) {
  const HitBlock& block = arena_.block(index);
  const uint32_t older = index == oldest() ? HitArena::kNone : block.older;
  const uint32_t newer = index == newest() ? HitArena::kNone : block.newer;
  if (older != HitArena::kNone) arena_.block(older).newer = newer;
  if (newer != HitArena::kNone) arena_.block(newer).older = older;
  SetEnds(index == oldest() ? newer : oldest(), index == newest() ? older : newest());
  Give(index);
}

void ArenaHitLog::Give(uint32_t block) {
  arena_.Give(block);
  blocks_.fetch_sub(1, std::memory_order_relaxed);
}

void ArenaHitLog::DropNewest() {
  const uint32_t index = newest();
  HitBlock& block = arena_.block(index);
  if (--block.end == block.begin) Unlink(index);
}

void ArenaHitLog::ReduceNewest(uint32_t cost) {
  HitBlock& block = arena_.block(newest());
  uint32_t& newest_cost = block.cost[block.end - 1];
  HEADGATE_DCHECK(cost <= newest_cost);
  newest_cost -= cost;
  if (newest_cost == 0) DropNewest();
}

uint32_t ArenaHitLog::ReduceAt(Instant at, uint64_t cost) {
  const uint64_t asked = cost;
  for (uint32_t index = newest(); index != HitArena::kNone && cost > 0;) {
    HitBlock& block = arena_.block(index);
    const uint32_t next = index == oldest() ? HitArena::kNone : block.older;
    const bool is_older = block.at_ns[block.begin] < at.ns;
    for (uint8_t i = block.end; i-- > block.begin && cost > 0;) {
      if (block.at_ns[i] != at.ns) continue;
      const auto part = static_cast<uint32_t>(std::min<uint64_t>(cost, block.cost[i]));
      cost -= part;
      block.cost[i] -= part;
      if (block.cost[i] > 0) continue;
      std::copy(block.at_ns + i + 1, block.at_ns + block.end, block.at_ns + i);
      std::copy(block.cost + i + 1, block.cost + block.end, block.cost + i);
      --block.end;
    }
    if (block.begin == block.end) Unlink(index);
    if (is_older) break;
    index = next;
  }
  return static_cast<uint32_t>(asked - cost);
}

bool ArenaHitLog::Append(Hit hit) {
  uint32_t index = newest();
  if (index != HitArena::kNone && arena_.block(index).end < HitBlock::kHits) {
    HitBlock& block = arena_.block(index);
    // Hits of the same instant expire together, so they share one entry.
    if (block.at_ns[block.end - 1] == hit.at.ns) {
      block.cost[block.end - 1] += hit.cost;
      return true;
    }
    block.at_ns[block.end] = hit.at.ns;
    block.cost[block.end] = hit.cost;
    ++block.end;
    return true;
  }
  const uint32_t added = arena_.Take();
  if (added == HitArena::kNone) return false;
  blocks_.fetch_add(1, std::memory_order_relaxed);
  HitBlock& block = arena_.block(added);
  block.at_ns[0] = hit.at.ns;
  block.cost[0] = hit.cost;
  block.older = index;
  block.newer = HitArena::kNone;
  block.begin = 0;
  block.end = 1;
  if (index != HitArena::kNone) arena_.block(index).newer = added;
  SetEnds(index == HitArena::kNone ? added : oldest(), added);
  return true;
}

void ArenaHitLog::ForEach(Visitor visit) const {
  for (uint32_t index = oldest(); index != HitArena::kNone; index = arena_.block(index).newer) {
    const HitBlock& block = arena_.block(index);
    for (uint8_t i = block.begin; i < block.end; ++i) {
      if (!visit({Instant::FromNanos(block.at_ns[i]), block.cost[i]})) return;
    }
  }
}

size_t ArenaHitLog::size() const {
  size_t count = 0;
  for (uint32_t index = oldest(); index != HitArena::kNone; index = arena_.block(index).newer)
    count += size_t{arena_.block(index).end} - arena_.block(index).begin;
  return count;
}

uint64_t ArenaHitLog::CountBlocks() const {
  uint64_t count = 0;
  for (uint32_t index = oldest(); index != HitArena::kNone; index = arena_.block(index).newer)
    ++count;
  return count;
}

void ArenaHitLog::SetPlaceOfNewest(uint32_t segment, uint8_t slot) {
  if (newest() == HitArena::kNone) return;
  arena_.block(newest()).segment.store(segment, std::memory_order_relaxed);
  arena_.block(newest()).slot.store(slot, std::memory_order_relaxed);
}

void ArenaHitLog::SetPlace(uint32_t segment, uint8_t slot) {
  for (uint32_t index = oldest(); index != HitArena::kNone; index = arena_.block(index).newer) {
    arena_.block(index).segment.store(segment, std::memory_order_relaxed);
    arena_.block(index).slot.store(slot, std::memory_order_relaxed);
  }
}

}  // namespace headgate::store
