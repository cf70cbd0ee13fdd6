// Assigns small numbers to the limits of a store's live buckets. A bucket's slot holds the number
// instead of the limit, so a bucket that was made under an older limit can still be read after the
// limit has changed.
//
// Limits are interned by value, version and owner; a LimitHandle pins one. Rules and clients have
// separate room:
//
//   rules     Clients cannot use this room. Intern fails if rules in force pin all of it.
//   clients   If more than `client_limits_max` limits are interned, one limit is *retired*: the
//             limit that is not pinned and whose last Intern is longest ago.
//
//             Intern             room needed, no handle
//   (none) ───────────> in use ─────────────────────────> retired
//                       │    ^                            │    │
//                       │    └─────────── Intern ─────────┘    │
//   (none) <────────────┴──────────────────────────────────────┘
//           two passes in a row find neither bucket nor handle
//
// A number is reused only when no bucket refers to it. To check this, MemoryStore visits every
// bucket in small steps; this is called a *pass*. A pass removes the buckets of retired limits and
// marks the numbers of the others. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/status.h"
#include "headgate/store/limit_class.h"

namespace headgate::store {

class LimitTable;

struct LimitEntry {
  algorithm::Limit limit;
  uint32_t id = 0;
  uint32_t version = 0;
  LimitClass* owner = nullptr;  // owned by the table
  uint64_t serial = 0;          // never reused, unlike the id

  // Keeps the buckets of this limit until `until`, even if they are full under it: their rule may
  // now have another limit, under which they are not full yet.
  void KeepBucketsUntil(base::Instant until) const {
    int64_t known = buckets_kept_until_ns.load(std::memory_order_relaxed);
    while (known < until.ns && !buckets_kept_until_ns.compare_exchange_weak(
                                   known, until.ns, std::memory_order_relaxed)) {
    }
  }
  // Whether this is the limit of all counters (memory_counters.cc).
  bool is_of_counters() const { return owner->owner == LimitOwner::Counters(); }
  base::Instant buckets_kept_until() const {
    return base::Instant::FromNanos(buckets_kept_until_ns.load(std::memory_order_relaxed));
  }

 private:
  friend class LimitTable;
  friend class LimitHandle;
  mutable std::atomic<uint32_t> handles{0};
  mutable std::atomic<int64_t> buckets_kept_until_ns{0};
  std::atomic<bool> retired{false};
  // The following members are guarded by the table's mutex. The pass at whose end the limit was
  // neither pinned nor found in a bucket, if it was not interned since; 0: none.
  uint32_t idle_pass = 0;
  // Neighbours in the list of limits in use, ordered by their last Intern; 0: none.
  uint32_t older = 0;
  uint32_t newer = 0;
};

// Pins an entry; copyable. Must not outlive its table.
class LimitHandle {
 public:
  LimitHandle() = default;
  LimitHandle(const LimitHandle& other) : LimitHandle(other.entry_) {}
  LimitHandle(LimitHandle&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  LimitHandle& operator=(LimitHandle other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~LimitHandle() {
    if (entry_ != nullptr) entry_->handles.fetch_sub(1, std::memory_order_release);
  }

  // Pins an entry that is pinned already.
  static LimitHandle Pin(const LimitEntry& entry) { return LimitHandle(&entry); }

  const LimitEntry* get() const { return entry_; }
  const LimitEntry& operator*() const { return *entry_; }
  const LimitEntry* operator->() const { return entry_; }
  explicit operator bool() const { return entry_ != nullptr; }

 private:
  friend class LimitTable;
  explicit LimitHandle(const LimitEntry* entry) : entry_(entry) {
    if (entry_ != nullptr) entry_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  const LimitEntry* entry_ = nullptr;
};

struct LimitTableOptions {
  // Limits of clients that are remembered, besides the pinned ones. At most kClientLimitsMax.
  uint32_t client_limits_max = 1u << 18;
  // Limits of rules. At most kRuleLimitsMax.
  uint32_t rule_limits_max = 3u << 16;
};

class LimitTable {
 public:
  // A slot has 20 bits for the number, a quarter of which is for rules. 0 means no limit.
  static constexpr uint32_t kIdsMax = 1u << 20;
  static constexpr uint32_t kRuleIds = 1u << 18;
  static constexpr uint32_t kClientLimitsMax = 1u << 19;
  static constexpr uint32_t kRuleLimitsMax = 3u << 16;

  explicit LimitTable(const LimitTableOptions& options = {});
  ~LimitTable();
  LimitTable(const LimitTable&) = delete;
  LimitTable& operator=(const LimitTable&) = delete;

  // Interns a limit. If a rule returns to a limit that it had before, use another version, so that
  // buckets from the first time can be recognized. If there are very many rules, the last ones
  // share their entries and form one class. ResourceExhausted if the owner's room is full of pinned
  // limits.
  absl::StatusOr<LimitHandle> Intern(const algorithm::Limit& limit, uint32_t version = 0,
                                     LimitOwner owner = LimitOwner::Clients());
  // The same, but never retires another limit.
  absl::StatusOr<LimitHandle> InternWhereRoom(const algorithm::Limit& limit, LimitOwner owner);

  // The limit of a number that a live bucket or a handle refers to. Lock-free.
  const LimitEntry& EntryOf(uint32_t id) const {
    return *chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk];
  }
  const algorithm::Limit& Get(uint32_t id) const { return EntryOf(id).limit; }
  // Whether buckets of this limit must be removed. Lock-free.
  bool IsRetired(uint32_t id) const { return EntryOf(id).retired.load(std::memory_order_relaxed); }

  // The live buckets of this owner.
  uint64_t BucketsOf(LimitOwner owner) const;

  uint32_t size() const;  // without retired ones
  uint32_t client_limits() const;
  uint64_t client_limits_forgotten() const {
    return client_limits_forgotten_.load(std::memory_order_relaxed);
  }

  // All limits in use, in no particular order. Check the serial of a bucket's limit against the
  // list, because its number may refer to another limit by then.
  struct Listed {
    uint32_t id;
    uint64_t serial;
    algorithm::LimitSpec spec;
    LimitOwner owner;
  };
  std::vector<Listed> List() const;

  // ---- Passes, one at a time: visit every bucket, then call EndPass until it returns 0.

  // Sets the function that does the visiting. Intern calls it, without holding a lock, with the
  // number of steps that are due. A pass has `steps_per_pass` steps besides those of EndPass. Call
  // SetScan before any bucket refers to a limit.
  void SetScan(std::function<void(uint64_t steps)> scan, uint64_t steps_per_pass);

  // Processes up to kIdsPerStep numbers from `first` on. Frees the limits that are idle, that is,
  // neither in `in_use` nor pinned, and were idle in the previous pass too. Returns the number to
  // continue with, or 0 if this pass is over and the next one begins.
  uint32_t EndPass(const std::vector<bool>& in_use, uint32_t first);

 private:
  static constexpr uint32_t kChunk = 4096;
  static constexpr uint32_t kIdsPerStep = 512;
  using Chunk = std::unique_ptr<LimitEntry>;
  using Key = std::pair<std::pair<algorithm::LimitSpec, uint32_t>, LimitOwner>;

  // The numbers of rules or of clients. Guarded by the mutex.
  struct Room {
    Room(uint32_t begin, uint32_t end, uint32_t most)
        : ids_end(end), in_use_max(most), next_id(begin) {}

    const uint32_t ids_end;
    const uint32_t in_use_max;
    uint32_t next_id;
    std::vector<uint32_t> free_ids;
    uint32_t in_use = 0;  // not retired
    uint32_t retired = 0;
    uint32_t oldest = 0;
    uint32_t newest = 0;

    uint32_t ids_left() const { return ids_end - next_id + static_cast<uint32_t>(free_ids.size()); }
  };

  LimitEntry* EntryAt(uint32_t id) const {
    return chunks_[id / kChunk].load(std::memory_order_relaxed)[id % kChunk].get();
  }
  Room& RoomOf(LimitOwner owner) { return owner.is_of_clients() ? clients_ : rules_; }

  enum class Full { kMakeWay, kFail };
  absl::StatusOr<LimitHandle> Intern(const algorithm::Limit& limit, uint32_t version,
                                     LimitOwner owner, Full full);
  absl::StatusOr<LimitHandle> InternLocked(const algorithm::Limit& limit, uint32_t version,
                                           LimitOwner owner, Full full);
  LimitEntry& Create(Room& room, const Key& key, const algorithm::Limit& limit);
  bool RetireOldest(Room& room);
  void Free(Room& room, LimitEntry& entry);
  void Link(Room& room, LimitEntry& entry);
  void Unlink(Room& room, LimitEntry& entry);
  uint64_t StepsDue(const Room& room) const;

  // Chunks are never moved or freed while the table lives, so Get needs no lock.
  std::array<std::atomic<Chunk*>, kIdsMax / kChunk> chunks_{};
  mutable std::mutex mutex_;
  Room rules_;
  Room clients_;
  absl::flat_hash_map<Key, uint32_t> by_key_;
  absl::flat_hash_map<LimitOwner, std::unique_ptr<LimitClass>> classes_;
  uint64_t last_serial_ = 0;
  uint32_t pass_ = 1;
  std::function<void(uint64_t)> scan_;
  uint64_t steps_per_pass_ = 0;
  std::atomic<uint64_t> client_limits_forgotten_{0};
};

}  // namespace headgate::store
