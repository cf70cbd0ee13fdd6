// The memory store: a bounded table of buckets, exact under any number of threads.
//
// Slots have 32 bytes and no key bytes; a bucket needs no allocation. The table grows with the
// buckets, one segment at a time (table_shape.h). A fresh bucket (full, and without a past) is not
// stored.
//
// When the table is full, each new bucket evicts another one; the loss is counted. Each rule is a
// class, and all limits that clients bring form one class. The candidates are the up to 120 buckets
// in the two segments of the new bucket. Among these the class that holds most of the table loses
// the bucket that loses least (the closest to fresh). A class therefore never loses a bucket to one
// that holds as much or more, and a flood evicts only its own buckets. README.md in this folder
// explains the layout and the theory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "headgate/algorithm/decide.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/store/fair_victim.h"
#include "headgate/store/hit_arena.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/pages.h"
#include "headgate/store/segment.h"
#include "headgate/store/store.h"
#include "headgate/store/table_shape.h"

namespace headgate::store {

struct MemoryOptions {
  // The most buckets in memory. The table grows with the buckets: it takes 57 to 114 bytes for each
  // while it grows, but at least 256 KiB, and 38 bytes when it is full. Raise it when
  // headgate_evictions_total grows.
  uint64_t max_buckets = 1u << 20;
  // The maximum number of different limits of clients. Beyond it the least recently used limit is
  // removed together with its buckets.
  uint32_t max_limits = 1u << 18;
  // The maximum number of different limits of rules.
  uint32_t max_rule_limits = LimitTable::kRuleLimitsMax;
  // Draw it from the operating system's random source.
  base::HashSecret secret{};
};

struct MemoryStats {
  uint64_t buckets = 0;  // live, or expired and not removed yet
  uint64_t buckets_max = 0;
  uint64_t evictions = 0;  // buckets evicted before they had expired
  // Requests that evicted buckets had counted, which may pass once more.
  uint64_t evicted_requests = 0;
  uint64_t hit_blocks = 0;  // of sliding_window_log; four hits per block
  uint64_t hit_blocks_max = 0;
  uint64_t hits_refused = 0;  // requests denied because there was no room for their hit
  uint64_t limits = 0;
  uint64_t client_limits = 0;            // part of `limits`
  uint64_t client_limits_forgotten = 0;  // removed to make room
  uint64_t left_out = 0;                 // buckets of the snapshot without room for their limit
  uint64_t rebased = 0;                  // restored buckets whose times were ahead of the clock
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const MemoryOptions& options);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void Take(base::Strided<const TakeRequest> requests, base::Strided<algorithm::Decision> decisions,
            base::Instant now) override;
  void TakeOne(const TakeRequest& request, algorithm::Decision& decision,
               base::Instant now) override;
  LimitHandle LimitOf(const base::Hash128& key) override;
  absl::StatusOr<algorithm::CounterAnswer> Increment(const base::Hash128& key,
                                                     const algorithm::CounterChange& change,
                                                     base::Instant now) override;
  std::optional<algorithm::Counter> FindCounter(const base::Hash128& key,
                                                base::Instant now) override;
  const base::HashSecret& hash_secret() const override { return secret_; }
  LimitTable& limits() override { return limits_; }

  // Removes expired buckets, and limits that have not been in use since the last call. Takes each
  // segment's lock briefly; call it every few seconds. Thread-safe. Returns the number of removed
  // buckets.
  uint64_t Sweep(base::Instant now);

  MemoryStats stats() const;

  // The live buckets as bytes, including the hash secret: keep the bytes private. Format:
  // docs/reference/snapshot.md. Buckets may be used meanwhile; each is written in a consistent
  // state.
  std::string Snapshot(base::Instant now);
  void WriteSnapshot(base::Instant now, const std::function<void(std::string_view)>& write);

  // Loads a snapshot into this store, which must be unused, and adopts its secret. DataLoss if the
  // snapshot is truncated or corrupt, Unimplemented if a newer version wrote it; in both cases
  // nothing is loaded. Buckets that do not fit are left out and counted: buckets beyond max_buckets
  // are evicted as usual, and buckets without room for their limit are skipped.
  absl::Status Restore(std::string_view snapshot, base::Instant now);

 private:
  // A slot that holds a bucket, or no slot.
  struct SlotRef {
    Segment* segment = nullptr;
    uint32_t slot = Segment::kNoSlot;
    bool found() const { return slot != Segment::kNoSlot; }
    Slot& operator*() const { return segment->slots[slot]; }
    Slot* operator->() const { return &segment->slots[slot]; }
  };
  // The state of a bucket before a request of a group changes it.
  struct Before {
    bool existed = false;
    uint32_t limit_id = 0;
    algorithm::BucketState state;
    algorithm::RememberedUntil remembered_until{};
  };
  // The segments of a key that the caller has locked.
  enum class Held { kFirst, kBoth };
  static constexpr size_t kGroupInline = 32;
  using GroupSegments = absl::InlinedVector<Segment*, 2 * kGroupInline>;
  // The context of a decision: the locked segments, and the bucket's slot if the bucket exists.
  struct AtHand {
    Held held;
    SlotRef ref;
  };

  // The two segments of a key. While a segment is locked, no key becomes or ceases to be one of its
  // keys.
  Segment& First(const Fingerprint& print) const { return segments_[shape_.SegmentOf(print.main)]; }
  Segment& Second(const Fingerprint& print) const {
    return segments_[shape_.SegmentOf(shape_.SecondBits(print.main))];
  }
  // Locks the key's first segment.
  Segment& LockFirst(const Fingerprint& print);
  [[gnu::always_inline]] void Prefetch(const base::Hash128& key) const {
    const Fingerprint print = Fingerprint::Of(key);
    First(print).Prefetch(print);
  }

  // Calls `act` while both segments of the key are locked.
  template <typename Act>
  void InBothSegments(const Fingerprint& print, const Act& act) {
    while (true) {
      Segment* const first = &First(print);
      Segment* const second = &Second(print);
      // Lock in the order of addresses, so that two threads cannot deadlock.
      std::lock_guard low_lock(std::min(first, second)->lock);
      std::unique_lock high_lock(std::max(first, second)->lock, std::defer_lock);
      if (second != first) high_lock.lock();
      // Possible if one of them was split before it was locked.
      if (first != &First(print) || second != &Second(print)) continue;
      return act();
    }
  }
  [[gnu::noinline]] void TakeOneAfterWaiting(const TakeRequest& request,
                                             algorithm::Decision& decision, base::Instant now);
  // Unlocks the segment, which the caller has locked when it was the first one of the key.
  [[gnu::noinline]] void TakeOneLocked(const TakeRequest& request, Segment& first,
                                       algorithm::Decision& decision, base::Instant now);
  // Like TakeLocked, while only the first segment is locked. Not inlined: see TakeOne.
  [[gnu::noinline]] bool TakeInFirst(const TakeRequest& request, const Fingerprint& print,
                                     algorithm::Decision& decision, base::Instant now);
  void TakeInBothSegments(const TakeRequest& request, const Fingerprint& print,
                          algorithm::Decision& decision, base::Instant now);
  void TakeGroup(base::Strided<const TakeRequest> group,
                 base::Strided<algorithm::Decision> decisions, base::Instant now);
  // Locks both segments of all keys. Returns them.
  GroupSegments LockAll(base::Strided<const TakeRequest> group);
  void Undo(const TakeRequest& request, const Fingerprint& print, const Before& before,
            const algorithm::Decision& decision);

  // Decides if the locked segments are enough to find and insert the bucket. Otherwise returns
  // false and changes nothing.
  bool TakeLocked(const TakeRequest& request, const Fingerprint& print, Held held,
                  algorithm::Decision& decision, base::Instant now);
  algorithm::Decision Apply(const TakeRequest& request, const Fingerprint& print,
                            const AtHand& at_hand, algorithm::BucketState& state,
                            base::Instant now);
  void CarryOver(const TakeRequest& request, algorithm::BucketState& state,
                 algorithm::RememberedUntil& remembered_until, uint32_t limit_id,
                 base::Instant now);

  SlotRef Find(const Fingerprint& print, Held held) const;
  void SetLimit(SlotRef ref, const LimitEntry& limit);
  algorithm::BucketState BucketAt(SlotRef ref) const;
  // The `remembered_until` of algorithm::Change for this bucket; 0 if it has passed.
  algorithm::RememberedUntil RememberedUntil(SlotRef ref) const;
  void Keep(SlotRef ref, const algorithm::BucketState& state,
            algorithm::RememberedUntil remembered_until);
  ArenaHitLog HitsOf(uint64_t& edge, const LimitEntry& limit) {
    return {hits_, edge, limit.owner->hit_blocks};
  }
  void SetNewestHitsSlot(SlotRef ref);
  void SetHitsSlots(SlotRef ref);

  // ---- Counters: memory_counters.cc

  absl::StatusOr<const LimitEntry*> EnsureCounters();
  algorithm::CounterAnswer IncrementLocked(const Fingerprint& print, const LimitEntry& counters,
                                           const algorithm::CounterChange& change,
                                           base::Instant now);
  // Whether the slot holds a counter. Removes one that has expired.
  bool HoldsCounter(SlotRef& ref, base::Instant now);

  // ---- Making room: memory_room.cc

  // Returns no slot if nothing can be evicted; the new bucket is then forgotten at once.
  SlotRef Insert(const Fingerprint& print, Held held, const LimitEntry& limit,
                 algorithm::BucketState state, base::Instant now);
  void Remove(SlotRef ref);
  // Splits one segment if the table should grow. Never waits for a lock.
  void GrowIfCrowded();
  // Grows a table without buckets, so that this many have room.
  void GrowFor(uint64_t buckets);
  void MergeTable();
  void MoveToParts(Segment& split);
  bool HasRoom(const Segment& first, const Segment* second) const;
  bool MakeRoom(const LimitClass& incoming, Segment& first, Segment* second, base::Instant now);
  bool MakeRoomElsewhere(const LimitClass& incoming, base::Instant now);
  SlotRef RemoveExpiredAndOffer(Segment& segment, FairVictim& choice, base::Instant now);
  void Evict(SlotRef ref, base::Instant now);
  void CountLoss(const LimitEntry& limit, algorithm::BucketState& state, base::Instant now);
  // The time from which the bucket is fresh.
  base::Instant FreshAtOf(SlotRef ref);
  uint64_t RemoveExpired(Segment& segment, base::Instant now);
  void ReclaimSomewhere(base::Instant now);
  void MakeRoomForHits(const TakeRequest& request, const Fingerprint& print, const AtHand& at_hand,
                       const algorithm::BucketState& state, base::Instant now);
  // Runs steps of a pass (limit_table.h), at the time of the latest insertion.
  void Scan(uint64_t steps);
  uint64_t ScanStep(base::Instant now);

  void RestoreBucket(const Fingerprint& print, const LimitEntry& entry,
                     algorithm::BucketState state, algorithm::RememberedUntil remembered_until,
                     base::Instant now);

  const uint64_t buckets_max_;
  TableShape shape_;
  SpinLock growth_lock_;            // held while a segment is split
  const Mapped<Segment> segments_;  // resident only where it was used
  // The SlotMore of each slot. Resident only as far as slots have such parts.
  using SegmentMore = std::array<SlotMore, Segment::kSlots>;
  const Mapped<SegmentMore> more_;
  base::HashSecret secret_;
  LimitTable limits_;
  HitArena hits_;
  alignas(64) std::atomic<uint64_t> buckets_{0};
  std::atomic<int64_t> inserted_at_ns_{0};  // time of the latest insertion
  std::atomic<uint64_t> sweep_hand_{0};
  std::atomic<uint64_t> hit_hand_{0};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> evicted_requests_{0};
  std::atomic<uint64_t> hits_refused_{0};
  std::atomic<uint64_t> rebased_{0};
  uint64_t left_out_ = 0;

  // The limit of all counters, once there was one.
  std::atomic<const LimitEntry*> counters_{nullptr};
  std::mutex counters_mutex_;
  LimitHandle counters_pin_;  // guarded by the mutex

  // The current pass.
  std::mutex scan_mutex_;
  uint64_t scan_segment_ = 0;
  uint32_t scan_id_ = 0;
  uint64_t passes_ = 0;
  std::vector<bool> limits_seen_ = std::vector<bool>(LimitTable::kIdsMax);
};

}  // namespace headgate::store
