// The memory store: a fixed table of buckets, exact under any number of threads.
//
// Fixed slots of 32 bytes, no key bytes, nothing allocated per bucket. A bucket that is as if never
// used is absent.
//
// When the table is full, each new bucket takes the place of another one, and what that counted is
// lost and counted. Each rule is a class, and all limits that clients bring are one together. Of
// the up to 120 buckets in the new one's two segments the class that holds most of the table gives
// way, and of its buckets the one that loses least (the closest to "as if never used"). So no class
// loses a bucket to one that holds as much or more: a flood pushes out itself. Layout and theory:
// README.md beside this file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/store/fair_victim.h"
#include "headgate/store/hit_arena.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/segment.h"
#include "headgate/store/store.h"

namespace headgate::store {

struct MemoryOptions {
  // The most buckets that are remembered. 38 bytes each, resident only where they are used; raise
  // it when headgate_evictions_total grows.
  uint64_t max_buckets = 1u << 20;
  // The most different limits of clients that are remembered; then the least recently used makes
  // way, with its buckets.
  uint32_t max_limits = 1u << 18;
  // The most different limits of rules.
  uint32_t max_rule_limits = LimitTable::kRuleLimitsMax;
  // Draw it from the operating system's random source.
  base::HashSecret secret{};
};

struct MemoryStats {
  uint64_t buckets = 0;  // live, or not yet noticed to have expired
  uint64_t buckets_max = 0;
  uint64_t evictions = 0;         // buckets forgotten while they still counted something
  uint64_t evicted_requests = 0;  // what they counted: requests that may pass once more
  uint64_t hit_blocks = 0;        // of sliding_window_log, four hits each
  uint64_t hit_blocks_max = 0;
  uint64_t hits_refused = 0;  // requests denied because no hit could be remembered
  uint64_t limits = 0;
  uint64_t client_limits = 0;            // of these
  uint64_t client_limits_forgotten = 0;  // those that made way
  uint64_t left_out = 0;                 // buckets of the snapshot whose limit found no room
  uint64_t rebased = 0;                  // restored buckets that were ahead of the clock
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const MemoryOptions& options);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void Take(base::Strided<const TakeRequest> requests, base::Strided<algorithm::Decision> decisions,
            base::Instant now) override;
  const base::HashSecret& hash_secret() const override { return secret_; }
  LimitTable& limits() override { return limits_; }

  // Removes expired buckets, and limits that have been out of use since the last call. Takes each
  // segment's lock for a moment; call it every few seconds. Thread-safe. Returns how many buckets
  // went.
  uint64_t Sweep(base::Instant now);

  MemoryStats stats() const;

  // The live buckets as bytes, the hash secret with them: keep them private. Format:
  // docs/reference/snapshot.md. Buckets may be used meanwhile; each is written as of one moment.
  std::string Snapshot(base::Instant now);
  void WriteSnapshot(base::Instant now, const std::function<void(std::string_view)>& write);

  // Loads a snapshot into this store, which has not been used yet, and adopts its secret. DataLoss
  // where it is truncated or corrupt, Unimplemented where a newer version wrote it; then nothing
  // was loaded. What does not fit is left out and counted: buckets beyond max_buckets are evicted
  // as ever, and those whose limit finds no room stay outside.
  absl::Status Restore(std::string_view snapshot, base::Instant now);

 private:
  // A slot that holds a bucket, or none.
  struct SlotRef {
    Segment* segment = nullptr;
    uint32_t slot = Segment::kNoSlot;
    bool found() const { return slot != Segment::kNoSlot; }
    Slot& operator*() const { return segment->slots[slot]; }
    Slot* operator->() const { return &segment->slots[slot]; }
  };
  // What a bucket was before a request of a group changed it.
  struct Before {
    bool existed = false;
    uint32_t limit_id = 0;
    algorithm::BucketState state;
    base::Instant remembered_until{0};
  };
  // Which of a key's two segments the caller has locked.
  enum class Held { kFirst, kBoth };
  // What a decision has at hand: which segments are locked, and where the bucket is, if it is
  // there.
  struct AtHand {
    Held held;
    SlotRef ref;
  };

  Segment& First(const Fingerprint& print) const {
    return segments_[base::MulHigh(print.main, segment_count_)];
  }
  Segment& Second(const Fingerprint& print) const;
  [[gnu::always_inline]] void Prefetch(const base::Hash128& key) const {
    const Fingerprint print = Fingerprint::Of(key);
    First(print).Prefetch(print);
  }

  void TakeInBothSegments(const TakeRequest& request, const Fingerprint& print,
                          algorithm::Decision& decision, base::Instant now);
  void TakeGroup(base::Strided<const TakeRequest> group,
                 base::Strided<algorithm::Decision> decisions, base::Instant now);
  void Undo(const TakeRequest& request, const Fingerprint& print, const Before& before,
            const algorithm::Decision& decision);

  // Decides where the bucket can be found and put with what is held; false, and nothing has
  // happened, where not.
  bool TakeLocked(const TakeRequest& request, const Fingerprint& print, Held held,
                  algorithm::Decision& decision, base::Instant now);
  algorithm::Decision Apply(const TakeRequest& request, const Fingerprint& print,
                            const AtHand& at_hand, algorithm::BucketState& state,
                            base::Instant now);
  void CarryOver(const TakeRequest& request, algorithm::BucketState& state,
                 base::Instant& remembered_until, uint32_t limit_id, base::Instant now);

  SlotRef Find(const Fingerprint& print, Held held) const;
  void SetLimit(SlotRef ref, const LimitEntry& limit);
  // What algorithm::Change keeps of the limits that the bucket had before; 0 where that is over.
  base::Instant RememberedUntil(SlotRef ref) const;
  void SetRememberedUntil(SlotRef ref, base::Instant remembered_until);
  ArenaHitLog HitsOf(uint64_t& edge, const LimitEntry& limit) {
    return {hits_, edge, limit.owner->hit_blocks};
  }
  void SetNewestHitsSlot(SlotRef ref);

  // ---- Making room: memory_room.cc

  // Not found: nothing makes way, and the bucket is forgotten at once.
  SlotRef Insert(const Fingerprint& print, Held held, const LimitEntry& limit,
                 algorithm::BucketState state, base::Instant now);
  void Remove(SlotRef ref);
  bool HasRoom(const Segment& first, const Segment* second) const;
  bool MakeRoom(const LimitClass& incoming, Segment& first, Segment* second, base::Instant now);
  bool MakeRoomElsewhere(const LimitClass& incoming, base::Instant now);
  SlotRef RemoveExpiredAndOffer(Segment& segment, FairVictim& choice, base::Instant now);
  void Evict(SlotRef ref, base::Instant now);
  void CountLoss(const LimitEntry& limit, algorithm::BucketState& state, base::Instant now);
  // From when on the bucket is as if never used.
  base::Instant FreshAtOf(SlotRef ref);
  uint64_t RemoveExpired(Segment& segment, base::Instant now);
  void ReclaimSomewhere(base::Instant now);
  void MakeRoomForHits(const TakeRequest& request, const Fingerprint& print, const AtHand& at_hand,
                       const algorithm::BucketState& state, base::Instant now);
  // Steps of a pass (limit_table.h), as of the latest insertion.
  void Scan(uint64_t steps);
  uint64_t ScanStep(base::Instant now);

  void RestoreBucket(const Fingerprint& print, const LimitEntry& entry,
                     algorithm::BucketState state, base::Instant remembered_until,
                     base::Instant now);

  const uint64_t buckets_max_;
  const uint64_t segment_count_;
  Segment* segments_;  // mapped whole, resident only where it was used
  // For each slot that is marked `remembered`, until when; resident only where such buckets live.
  using RememberedTimes = std::array<base::Instant, Segment::kSlots>;
  RememberedTimes* remembered_;
  base::HashSecret secret_;
  LimitTable limits_;
  HitArena hits_;
  alignas(64) std::atomic<uint64_t> buckets_{0};
  std::atomic<int64_t> inserted_at_ns_{0};  // the latest
  std::atomic<uint64_t> sweep_hand_{0};
  std::atomic<uint64_t> hit_hand_{0};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> evicted_requests_{0};
  std::atomic<uint64_t> hits_refused_{0};
  std::atomic<uint64_t> rebased_{0};
  uint64_t left_out_ = 0;

  // The pass that is under way.
  std::mutex scan_mutex_;
  uint64_t scan_segment_ = 0;
  uint32_t scan_id_ = 0;
  uint64_t passes_ = 0;
  std::vector<bool> limits_seen_ = std::vector<bool>(LimitTable::kIdsMax);
};

}  // namespace headgate::store
