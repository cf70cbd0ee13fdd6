// How the memory store makes room for a new bucket, a hit or a limit. memory.h states what the
// table promises.
#include <algorithm>
#include <bit>
#include <mutex>

#include "headgate/base/check.h"
#include "headgate/store/memory.h"
#include "headgate/store/pages.h"

namespace headgate::store {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::Decision;
using algorithm::Limit;
using base::Instant;

namespace {

// Other segments that are checked for expired buckets, and for a victim if the new bucket's own
// segments have none.
constexpr int kReclaimSegments = 2;
constexpr int kElsewhereSegments = 8;
// Hit blocks that are sampled to find a log to evict.
constexpr int kHitBlocksSampled = 32;
// Knuth, TAOCP 3, 6.4: spreads consecutive numbers evenly.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
constexpr uint64_t kSweepSteps = 16;
// Buckets per segment at which the table doubles: each new bucket splits one segment. Segments are
// rarely full then, so buckets rarely live in their second segment.
constexpr uint64_t kGrowFrom = 36;
// `spilled` stays at this number once it has reached it.
constexpr uint16_t kSpilledMax = 0xffff;

// The loss of evicting a bucket: how long it would still count, times the used share of its limit.
// For a bucket that refills, the time until it is full covers both factors.
uint64_t LossOf(const Limit& limit, const BucketState& state, Instant fresh_at, Instant now) {
  const auto lasts = static_cast<uint64_t>(std::max<int64_t>(0, (fresh_at - now).count()));
  uint64_t used = 0;
  switch (TraitsOf(limit.algorithm()).state) {
    case algorithm::StateForm::kBucket:
      return lasts;
    case algorithm::StateForm::kWindows: {
      const algorithm::WindowCounts counts = algorithm::WindowCounts::Of(state);
      used = uint64_t{counts.current} + counts.previous;
      break;
    }
    case algorithm::StateForm::kWindow:
    case algorithm::StateForm::kHits:
      used = state.count;
  }
  // 31 bits of one factor and 32 of the other are precise enough, and their product fits into 64
  // bits.
  const uint64_t capacity = std::max<uint64_t>(1, limit.capacity());
  const int shift = std::max(0, static_cast<int>(std::bit_width(lasts)) - 31);
  return ((lasts >> shift) * std::min(used, capacity) / capacity) << shift;
}

}  // namespace

// ---- For a bucket

MemoryStore::SlotRef MemoryStore::Insert(const Fingerprint& print, Held held,
                                         const LimitEntry& limit, BucketState state, Instant now) {
  Segment* first = &First(print);
  Segment* second = held == Held::kBoth && shape_.count() > 1 ? &Second(print) : nullptr;
  inserted_at_ns_.store(now.ns, std::memory_order_relaxed);
  if (!HasRoom(*first, second) && !MakeRoom(*limit.owner, *first, second, now)) {
    CountLoss(limit, state, now);
    ArenaHitLog hits = HitsOf(state.edge, limit);
    Reset(limit.limit, state, hits);
    return {};
  }
  Segment* target =
      second != nullptr && second->used_slots() < first->used_slots() ? second : first;
  const uint32_t slot = target->FindFree(print);
  HEADGATE_CHECK(slot != Segment::kNoSlot);
  target->Put(slot, print, limit.id, state);
  if (target == second && first->spilled.load(std::memory_order_relaxed) < kSpilledMax)
    first->spilled.fetch_add(1, std::memory_order_relaxed);
  buckets_.fetch_add(1, std::memory_order_relaxed);
  limit.owner->buckets.fetch_add(1, std::memory_order_relaxed);
  if (IsLog(limit.limit)) SetHitsSlots({target, slot});
  GrowIfCrowded();
  return {target, slot};
}

void MemoryStore::GrowIfCrowded() {
  if (!shape_.grows() ||
      buckets_.load(std::memory_order_relaxed) < shape_.count_before_round() * kGrowFrom) [[likely]]
    return;
  // Only try the locks, because the caller may hold them. If one is taken, a later bucket splits
  // the segment.
  const std::unique_lock growth(growth_lock_, std::try_to_lock);
  if (!growth.owns_lock() || !shape_.grows()) return;
  const uint64_t split = shape_.next_to_split();
  const std::unique_lock lock(segments_[split].lock, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::unique_lock<SpinLock> part_locks[2];
  for (const uint64_t part : {2 * split, 2 * split + 1}) {
    if (part == split) continue;
    part_locks[part % 2] = std::unique_lock(segments_[part].lock, std::try_to_lock);
    if (!part_locks[part % 2].owns_lock()) return;
  }
  shape_.SplitNext();
  MoveToParts(segments_[split]);
  if (split == 0) MergeTable();
}

// Both parts must be empty and locked, and the table must have its new shape already.
void MemoryStore::MoveToParts(Segment& split) {
  Segment* const parts = &segments_[2 * (&split - segments_)];
  const uint16_t spilled = split.spilled.exchange(0, std::memory_order_relaxed);
  for (int i = 0; i < 2; ++i) parts[i].spilled.store(spilled, std::memory_order_relaxed);
  split.ForEachUsed([&](uint32_t slot) {
    const Fingerprint print = split.PrintOf(slot);
    const Segment* const first = &First(print);
    Segment& part = first == &parts[0] || first == &parts[1] ? First(print) : Second(print);
    if (&part == &split) return;
    const SlotRef before{&split, slot}, after{&part, part.FindFree(print)};
    const LimitEntry& limit = limits_.EntryOf(before->limit_id());
    part.Put(after.slot, print, limit.id, before->Load());
    Keep(after, BucketAt(before), RememberedUntil(before));
    if (IsLog(limit.limit)) SetHitsSlots(after);
    split.Free(slot);
  });
}

void MemoryStore::GrowFor(uint64_t buckets) {
  while (shape_.grows() && shape_.count_before_round() * kGrowFrom < buckets) shape_.Double();
}

// All of the table has been touched, so huge pages take no more memory than small ones.
void MemoryStore::MergeTable() {
  MergePages(segments_, shape_.count_before_round() * sizeof(Segment));
}

void MemoryStore::Remove(SlotRef ref) {
  const LimitEntry& limit = limits_.EntryOf(ref->limit_id());
  if (IsLog(limit.limit)) {
    ArenaHitLog hits = HitsOf(ref->edge, limit);
    while (!hits.empty()) hits.DropOldest();
  }
  Segment& first = First(ref.segment->PrintOf(ref.slot));
  if (&first != ref.segment && !shape_.grows() &&
      first.spilled.load(std::memory_order_relaxed) < kSpilledMax)
    first.spilled.fetch_sub(1, std::memory_order_relaxed);
  ref.segment->Free(ref.slot);
  buckets_.fetch_sub(1, std::memory_order_relaxed);
  limit.owner->buckets.fetch_sub(1, std::memory_order_relaxed);
}

bool MemoryStore::HasRoom(const Segment& first, const Segment* second) const {
  const bool slot = first.used_slots() < Segment::kSlots ||
                    (second != nullptr && second->used_slots() < Segment::kSlots);
  return slot && buckets_.load(std::memory_order_relaxed) < buckets_max_;
}

bool MemoryStore::MakeRoom(const LimitClass& incoming, Segment& first, Segment* second,
                           Instant now) {
  ReclaimSomewhere(now);
  if (HasRoom(first, second)) return true;
  FairVictim choice(incoming, incoming.buckets.load(std::memory_order_relaxed));
  SlotRef victim = RemoveExpiredAndOffer(first, choice, now);
  if (second != nullptr) {
    if (const SlotRef better = RemoveExpiredAndOffer(*second, choice, now); better.found())
      victim = better;
  }
  if (HasRoom(first, second)) return true;
  if (victim.found()) {
    Evict(victim, now);
    return true;
  }
  const bool slot = first.used_slots() < Segment::kSlots ||
                    (second != nullptr && second->used_slots() < Segment::kSlots);
  return slot && MakeRoomElsewhere(incoming, now);
}

// No class in the new bucket's segments holds more than the incoming class, and this class has no
// bucket there. So one of its own buckets in another segment must go.
bool MemoryStore::MakeRoomElsewhere(const LimitClass& incoming, Instant now) {
  for (int i = 0; i < kElsewhereSegments; ++i) {
    Segment& segment =
        segments_[sweep_hand_.fetch_add(1, std::memory_order_relaxed) % shape_.count()];
    if (!segment.lock.try_lock()) continue;  // another thread or the caller holds it
    std::lock_guard lock(segment.lock, std::adopt_lock);
    FairVictim choice(incoming, incoming.buckets.load(std::memory_order_relaxed));
    const SlotRef victim = RemoveExpiredAndOffer(segment, choice, now);
    if (buckets_.load(std::memory_order_relaxed) < buckets_max_) return true;
    if (!victim.found()) continue;
    Evict(victim, now);
    return true;
  }
  return false;
}

// Removes expired buckets and offers the others to `choice`. Returns the segment's best victim, if
// that is better than the earlier offers.
MemoryStore::SlotRef MemoryStore::RemoveExpiredAndOffer(Segment& segment, FairVictim& choice,
                                                        Instant now) {
  SlotRef victim;
  for (uint32_t slot = 0; slot < Segment::kSlots; ++slot) {
    if (segment.tags[slot] == 0) continue;
    const SlotRef ref{&segment, slot};
    const Instant fresh_at = FreshAtOf(ref);
    if (fresh_at <= now) {
      Remove(ref);
      continue;
    }
    const LimitEntry& limit = limits_.EntryOf(ref->limit_id());
    const uint64_t held = limit.owner->buckets.load(std::memory_order_relaxed);
    if (choice.Offer(*limit.owner, held, LossOf(limit.limit, ref->Load(), fresh_at, now)))
      victim = ref;
  }
  return victim;
}

void MemoryStore::Evict(SlotRef ref, Instant now) {
  const LimitEntry& limit = limits_.EntryOf(ref->limit_id());
  if (FreshAtOf(ref) > now) {
    BucketState state = ref->Load();
    CountLoss(limit, state, now);
    ref->Store(state);
  }
  Remove(ref);
}

void MemoryStore::CountLoss(const LimitEntry& limit, BucketState& state, Instant now) {
  ArenaHitLog hits = HitsOf(state.edge, limit);
  const Decision peeked = Decide(limit.limit, state, hits, 0, now);
  evictions_.fetch_add(1, std::memory_order_relaxed);
  if (peeked.limit > peeked.remaining) {
    evicted_requests_.fetch_add(peeked.limit - peeked.remaining, std::memory_order_relaxed);
  }
}

Instant MemoryStore::FreshAtOf(SlotRef ref) {
  BucketState state = BucketAt(ref);
  const LimitEntry& limit = limits_.EntryOf(ref->limit_id());
  return std::max<Instant>({FreshAt(limit.limit, state, HitsOf(state.edge, limit)),
                            RememberedUntil(ref), MattersUntil(limit.limit, state)});
}

uint64_t MemoryStore::RemoveExpired(Segment& segment, Instant now) {
  uint64_t removed = 0;
  segment.ForEachUsed([&](uint32_t slot) {
    if (FreshAtOf({&segment, slot}) > now) return;
    if (limits_.EntryOf(segment.slots[slot].limit_id()).buckets_kept_until() > now) return;
    Remove({&segment, slot});
    ++removed;
  });
  return removed;
}

void MemoryStore::ReclaimSomewhere(Instant now) {
  for (int i = 0; i < kReclaimSegments; ++i) {
    Segment& segment =
        segments_[sweep_hand_.fetch_add(1, std::memory_order_relaxed) % shape_.count()];
    if (!segment.lock.try_lock()) continue;  // another thread or the caller holds it
    RemoveExpired(segment, now);
    segment.lock.unlock();
  }
}

// ---- For a hit

void MemoryStore::SetHitsSlots(SlotRef ref) {
  HitsOf(ref->edge, limits_.EntryOf(ref->limit_id()))
      .SetPlace(static_cast<uint32_t>(ref.segment - segments_), static_cast<uint8_t>(ref.slot));
}

void MemoryStore::SetNewestHitsSlot(SlotRef ref) {
  const LimitEntry& limit = limits_.EntryOf(ref->limit_id());
  HitsOf(ref->edge, limit)
      .SetPlaceOfNewest(static_cast<uint32_t>(ref.segment - segments_),
                        static_cast<uint8_t>(ref.slot));
}

// Samples blocks all over the arena: the more a class holds, the sooner one of its logs is found.
void MemoryStore::MakeRoomForHits(const TakeRequest& request, const Fingerprint& print,
                                  const AtHand& at_hand, const BucketState& state, Instant now) {
  const Limit& limit = request.limit->limit;
  BucketState with_this = state;
  with_this.count += static_cast<uint32_t>(std::min<uint64_t>(request.cost, limit.capacity()));
  const Instant fresh_at = now + base::Duration(static_cast<int64_t>(limit.period()));
  const LimitClass& incoming = *request.limit->owner;
  FairVictim choice(incoming, incoming.hit_blocks.load(std::memory_order_relaxed),
                    LossOf(limit, with_this, fresh_at, now));

  const auto is_held = [&](const Segment* segment) {
    return segment == &First(print) || (at_hand.held == Held::kBoth && segment == &Second(print));
  };
  const auto is_own = [&](SlotRef ref) {
    return ref.segment == at_hand.ref.segment && ref.slot == at_hand.ref.slot;
  };
  SlotRef victim;
  Fingerprint victim_print{};
  for (int i = 0; i < kHitBlocksSampled; ++i) {
    const uint64_t spread = hit_hand_.fetch_add(1, std::memory_order_relaxed) * kGolden;
    const HitBlock& block =
        hits_.block(1 + static_cast<uint32_t>(base::MulHigh(spread, hits_.blocks_max())));
    const uint32_t segment_index = block.segment.load(std::memory_order_relaxed);
    const uint32_t slot = block.slot.load(std::memory_order_relaxed);
    if (segment_index >= shape_.count() || slot >= Segment::kSlots) continue;
    const SlotRef ref{&segments_[segment_index], slot};
    const bool held = is_held(ref.segment);
    if (!held && !ref.segment->lock.try_lock()) continue;
    bool removed = false;
    if (ref.segment->tags[slot] != 0 && IsLog(limits_.Get(ref->limit_id())) && !is_own(ref)) {
      const LimitEntry& other = limits_.EntryOf(ref->limit_id());
      const Instant other_fresh_at = FreshAtOf(ref);
      removed = other_fresh_at <= now;
      if (removed) {
        Remove(ref);
      } else if (choice.Offer(*other.owner, other.owner->hit_blocks.load(std::memory_order_relaxed),
                              LossOf(other.limit, ref->Load(), other_fresh_at, now))) {
        victim = ref;
        victim_print = ref.segment->PrintOf(slot);
      }
    }
    if (!held) ref.segment->lock.unlock();
    if (removed) return;
  }
  if (!victim.found()) return;
  const bool held = is_held(victim.segment);
  if (!held && !victim.segment->lock.try_lock()) return;
  if (victim.segment->tags[victim.slot] != 0 &&
      victim.segment->PrintOf(victim.slot) == victim_print) {
    Evict(victim, now);
  }
  if (!held) victim.segment->lock.unlock();
}

// ---- For a limit

uint64_t MemoryStore::Sweep(Instant now) {
  uint64_t removed = 0;
  std::unique_lock lock(scan_mutex_);
  // First finish the current pass, which may have missed recent changes.
  const uint64_t until = passes_ + (scan_segment_ > 0 ? 2 : 1);
  while (passes_ < until) {
    for (uint64_t i = 0; i < kSweepSteps && passes_ < until; ++i) removed += ScanStep(now);
    lock.unlock();
    lock.lock();
  }
  return removed;
}

void MemoryStore::Scan(uint64_t steps) {
  std::lock_guard lock(scan_mutex_);
  const Instant now = Instant::FromNanos(inserted_at_ns_.load(std::memory_order_relaxed));
  for (; steps > 0; --steps) ScanStep(now);
}

// Processes one segment or, after the last one, some of the limits' numbers. Returns the number of
// expired buckets.
uint64_t MemoryStore::ScanStep(Instant now) {
  if (scan_segment_ == shape_.count()) {
    scan_id_ = limits_.EndPass(limits_seen_, scan_id_);
    if (scan_id_ != 0) return 0;
    limits_seen_.assign(limits_seen_.size(), false);
    scan_segment_ = 0;
    ++passes_;
    return 0;
  }
  Segment& segment = segments_[scan_segment_++];
  if (segment.used_slots() == 0)
    return 0;  // not locked, because locking would make its memory resident
  if (scan_segment_ < shape_.count()) segments_[scan_segment_].PrefetchAll();
  std::lock_guard lock(segment.lock);
  const uint64_t removed = RemoveExpired(segment, now);
  segment.ForEachUsed([&](uint32_t slot) {
    const uint32_t limit_id = segment.slots[slot].limit_id();
    if (limits_.IsRetired(limit_id)) {
      Evict({&segment, slot}, now);
    } else {
      limits_seen_[limit_id] = true;
    }
  });
  return removed;
}

}  // namespace headgate::store
