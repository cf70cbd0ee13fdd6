// The memory store: a fixed table of buckets, exact under any number of threads.
//
// Fixed slots of 32 bytes, no key bytes, nothing allocated per bucket. A bucket that is as if never used is absent.
// When the table is full it forgets the bucket that loses least (the closest to "as if never used", of the up to 120
// that share the new one's two segments) and counts what was lost; a flood of new keys cannot wash out the exhausted
// ones. Layout and theory: README.md beside this file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/algorithm/decide.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/store/hit_arena.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/segment.h"
#include "headgate/store/store.h"

namespace headgate::store {

struct MemoryOptions {
  // The most buckets that are remembered. 38 bytes each, resident only where they are used; raise it when
  // headgate_evictions_total grows.
  uint64_t max_buckets = 1u << 20;
  // The most different limits in use at a time.
  uint32_t max_limits = 1u << 18;
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
  uint64_t rebased = 0;  // restored buckets that were ahead of the clock
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const MemoryOptions& options);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void Take(std::span<const TakeRequest> requests, std::span<algorithm::Decision> decisions,
            base::Instant now) override;
  const base::HashSecret& hash_secret() const override { return secret_; }
  LimitTable& limits() override { return limits_; }

  // Removes expired buckets and unused limits. Takes each segment's lock for a moment; call it every few seconds from
  // one thread. Returns how many buckets went.
  uint64_t Sweep(base::Instant now);

  MemoryStats stats() const;

  // The live buckets as bytes, the hash secret with them: keep them private. Format: docs/reference/snapshot.md.
  // Buckets may be used meanwhile; each is written as of one moment.
  std::string Snapshot(base::Instant now);
  void WriteSnapshot(base::Instant now, const std::function<void(std::string_view)>& write);

  // Loads a snapshot into this store, which has not been used yet, and adopts its secret. DataLoss where it is
  // truncated or corrupt, Unimplemented where a newer version wrote it; then nothing was loaded.
  absl::Status Restore(std::string_view snapshot, base::Instant now);

 private:
  // A slot that holds a bucket, or none.
  struct Place {
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

  Segment& First(const Fingerprint& print) const { return segments_[base::MulHigh(print.main, segment_count_)]; }
  Segment& Second(const Fingerprint& print) const;
  [[gnu::always_inline]] void Prefetch(const base::Hash128& key) const {
    const Fingerprint print = Fingerprint::Of(key);
    First(print).Prefetch(print);
  }

  void TakeInBothSegments(const TakeRequest& request, const Fingerprint& print, algorithm::Decision& decision,
                          base::Instant now);
  void TakeGroup(std::span<const TakeRequest> group, std::span<algorithm::Decision> decisions, base::Instant now);
  void Undo(const TakeRequest& request, const Fingerprint& print, const Before& before,
            const algorithm::Decision& decision);

  // Decides where the bucket can be found and put with what is held; false, and nothing has happened, where not.
  bool TakeLocked(const TakeRequest& request, const Fingerprint& print, Held held, algorithm::Decision& decision,
                  base::Instant now);
  algorithm::Decision Apply(const TakeRequest& request, algorithm::BucketState& state, base::Instant now);
  void CarryOver(const TakeRequest& request, algorithm::BucketState& state, base::Instant& remembered_until,
                 uint32_t limit_id, base::Instant now);

  Place Find(const Fingerprint& print, Held held) const;
  Place Insert(const Fingerprint& print, Held held, uint32_t limit_id, const algorithm::BucketState& state,
               base::Instant now);
  void Remove(Place place);
  // What algorithm::Change keeps of the limits that the bucket had before; 0 where that is over.
  base::Instant RememberedUntil(Place place) const;
  void SetRememberedUntil(Place place, base::Instant remembered_until);
  void EvictLeastLoss(Segment& first, Segment* second, base::Instant now);
  void Evict(Place place, base::Instant now);
  Place LeastLoss(Segment& segment, base::Instant& fresh_at);
  // From when on the bucket is as if never used.
  base::Instant FreshAtOf(Place place);
  uint64_t RemoveExpired(Segment& segment, base::Instant now);
  void ReclaimSomewhere(base::Instant now);
  void MakeRoomForHits(base::Instant now);
  void RestoreBucket(const Fingerprint& print, const LimitEntry& entry, algorithm::BucketState state,
                     base::Instant remembered_until, base::Instant now);

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
  std::atomic<uint64_t> sweep_hand_{0};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> evicted_requests_{0};
  std::atomic<uint64_t> hits_refused_{0};
  std::atomic<uint64_t> rebased_{0};
};

}  // namespace headgate::store
