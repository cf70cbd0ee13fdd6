// A segment of the memory store's table: 60 buckets, their lock and their tags in 2 KiB.
//
//   bytes 0-127      lock, counts, and a 16-bit tag for each slot (0: the slot is free)
//   bytes 128-2047   15 blocks of four 32-byte slots;
//                    a block is two cache lines, which are fetched together
//
// A key's hash selects a segment and, in it, a home block. The bucket is stored in its home block
// if that has room. The cache lines that a decision needs are then known before the table is read
// and can be fetched at once. Otherwise the bucket is stored anywhere in the segment and found by
// its tag.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "headgate/algorithm/bucket.h"
#include "headgate/base/hash.h"
#include "headgate/base/wide.h"
#include "headgate/store/spin_lock.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace headgate::store {

// The 91 bits of a key's 128-bit hash that a slot keeps. They alone determine the location in the
// table, so a snapshot can be loaded into a table of another size.
struct Fingerprint {
  uint64_t main;
  uint16_t tag;    // never 0
  uint16_t extra;  // 11 bits

  static constexpr uint32_t kExtraMask = 0x7ff;

  static Fingerprint Of(const base::Hash128& hash) {
    const auto tag = static_cast<uint16_t>(hash.high);
    return {hash.low, tag != 0 ? tag : uint16_t{1},
            static_cast<uint16_t>(hash.high >> 16 & kExtraMask)};
  }
  bool operator==(const Fingerprint&) const = default;
};

struct Slot {
  uint64_t main;
  uint64_t edge;
  int64_t seen_ns;
  uint32_t count;
  // 20 bits: number of the limit; 1 bit: `has_more`; 11 bits: part of the fingerprint.
  uint32_t limit_and_extra;

  static constexpr uint32_t kHasMore = 0x800;

  uint32_t limit_id() const { return limit_and_extra >> 12; }
  void SetLimit(uint32_t id) { limit_and_extra = id << 12 | (limit_and_extra & 0xfff); }
  bool Holds(const Fingerprint& print) const {
    return main == print.main && (limit_and_extra & Fingerprint::kExtraMask) == print.extra;
  }
  // Whether the bucket has parts outside the table (SlotMore).
  bool has_more() const { return (limit_and_extra & kHasMore) != 0; }
  void SetHasMore(bool has_more) {
    limit_and_extra = has_more ? limit_and_extra | kHasMore : limit_and_extra & ~kHasMore;
  }

  // Without the block.
  algorithm::BucketState Load() const {
    return {edge, base::Instant::FromNanos(seen_ns), count, {}};
  }
  void Store(const algorithm::BucketState& state) {
    edge = state.edge;
    seen_ns = state.seen.ns;
    count = state.count;
  }
};
static_assert(sizeof(Slot) == 32);

// The parts that few buckets have.
struct SlotMore {
  uint64_t remembered_until;  // RememberedUntil as one word (ToWord)
  algorithm::Block block;
};
static_assert(sizeof(SlotMore) == 24);

struct alignas(2048) Segment {
  static constexpr uint32_t kSlots = 60;
  static constexpr uint32_t kBlockSlots = 4;
  static constexpr uint32_t kBlocks = kSlots / kBlockSlots;
  static constexpr uint32_t kNoSlot = kSlots;

  SpinLock lock;
  // Slots in use. Written under the lock; may be read without it to check for any buckets.
  std::atomic<uint8_t> used;
  // At least the number of buckets whose first segment is this one but which are stored in their
  // second segment. Incremented under both locks. While the table grows, it is not decremented,
  // because the first segment of a bucket may be split meanwhile. Later it is decremented under one
  // lock.
  std::atomic<uint16_t> spilled;
  uint32_t unused;
  std::array<uint16_t, kSlots> tags;
  std::array<Slot, kSlots> slots;

  uint32_t used_slots() const { return used.load(std::memory_order_relaxed); }

  static uint32_t HomeBlock(const Fingerprint& print) {
    return (uint32_t{print.tag} * kBlocks) >> 16;
  }

  // Prefetches everything that a decision about this key will probably read. Always inlined,
  // because GCC 12 treats a function that only prefetches as having no effect and drops calls to
  // it.
  [[gnu::always_inline]] void Prefetch(const Fingerprint& print) const {
    const auto* bytes = reinterpret_cast<const char*>(this);
    const auto* home = reinterpret_cast<const char*>(&slots[HomeBlock(print) * kBlockSlots]);
    __builtin_prefetch(bytes, 1);
    __builtin_prefetch(bytes + 64, 1);
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 64, 1);
  }

  // Prefetches the whole segment. Always inlined, see above.
  [[gnu::always_inline]] void PrefetchAll() const {
    const auto* bytes = reinterpret_cast<const char*>(this);
    for (size_t line = 0; line < sizeof(Segment); line += 64) __builtin_prefetch(bytes + line);
  }

  // The slot of the home block that holds the key, or kNoSlot.
  uint32_t FindAtHome(const Fingerprint& print) const {
    const uint32_t home = HomeBlock(print) * kBlockSlots;
    for (uint32_t i = home; i < home + kBlockSlots; ++i) {
      if (tags[i] == print.tag && slots[i].Holds(print)) return i;
    }
    return kNoSlot;
  }

  // The slot that holds the key, or kNoSlot. This and all following functions require the lock.
  uint32_t Find(const Fingerprint& print) const {
    if (const uint32_t home = FindAtHome(print); home != kNoSlot) return home;
    for (uint64_t candidates = WithTag(print.tag); candidates != 0; candidates &= candidates - 1) {
      const auto i = static_cast<uint32_t>(std::countr_zero(candidates));
      if (slots[i].Holds(print)) return i;
    }
    return kNoSlot;
  }

  // Calls `visit(slot)` for each slot that is in use now; it may free that slot.
  template <typename Visit>
  void ForEachUsed(const Visit& visit) const {
    constexpr uint64_t kAll = (uint64_t{1} << kSlots) - 1;
    for (uint64_t rest = kAll & ~WithTag(0); rest != 0; rest &= rest - 1)
      visit(static_cast<uint32_t>(std::countr_zero(rest)));
  }

  // A free slot, in the home block if possible; kNoSlot if all are in use.
  uint32_t FindFree(const Fingerprint& print) const {
    if (used_slots() == kSlots) return kNoSlot;
    const uint32_t home = HomeBlock(print) * kBlockSlots;
    for (uint32_t i = home; i < home + kBlockSlots; ++i) {
      if (tags[i] == 0) return i;
    }
    return static_cast<uint32_t>(std::countr_zero(WithTag(0)));
  }

  void Put(uint32_t slot, const Fingerprint& print, uint32_t limit_id,
           const algorithm::BucketState& state) {
    tags[slot] = print.tag;
    slots[slot].main = print.main;
    slots[slot].limit_and_extra = limit_id << 12 | print.extra;
    slots[slot].Store(state);
    used.store(static_cast<uint8_t>(used_slots() + 1), std::memory_order_relaxed);
  }

  void Free(uint32_t slot) {
    tags[slot] = 0;
    used.store(static_cast<uint8_t>(used_slots() - 1), std::memory_order_relaxed);
  }

  Fingerprint PrintOf(uint32_t slot) const {
    return {slots[slot].main, tags[slot],
            static_cast<uint16_t>(slots[slot].limit_and_extra & Fingerprint::kExtraMask)};
  }

 private:
  // Returns a mask with one bit for each slot that has this tag.
  uint64_t WithTag(uint16_t tag) const {
    uint64_t mask = 0;
#if defined(__x86_64__)
    const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(tag));
    const auto compare = [&](uint32_t at) {
      return _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&tags[at])), wanted);
    };
    const auto bits = [](__m128i low, __m128i high) {
      return static_cast<uint64_t>(
          static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high))));
    };
    mask = bits(compare(0), compare(8)) | bits(compare(16), compare(24)) << 16 |
           bits(compare(32), compare(40)) << 32;
    // 60 is not a multiple of 16: the last four tags are read again together with the four before
    // them.
    mask |= (bits(compare(48), compare(52)) & 0xff) << 48;
    mask |= (bits(compare(52), compare(52)) & 0xf0) << 52;
#else
    for (uint32_t i = 0; i < kSlots; ++i) mask |= uint64_t{tags[i] == tag} << i;
#endif
    return mask;
  }
};
static_assert(sizeof(Segment) == 2048);

}  // namespace headgate::store
