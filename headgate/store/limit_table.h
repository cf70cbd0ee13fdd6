// Every limit that a store has live buckets of, under a small number: a bucket's slot holds that number instead of the
// limit, and a bucket that was made under an older limit can still be read when the limit has changed.
//
// Limits are interned by value. A LimitHandle pins its entry; an entry without a handle stays as long as some bucket
// may still refer to it, and is reclaimed by MemoryStore::Sweep. Bounded by `limits_max`. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/status.h"

namespace headgate::store {

class LimitTable;

struct LimitEntry {
  algorithm::Limit limit;
  uint32_t id = 0;
  uint32_t version = 0;

 private:
  friend class LimitTable;
  friend class LimitHandle;
  mutable std::atomic<uint32_t> handles{0};
  bool touched = false;  // given out since the last sweep began; guarded by the table's mutex
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

  // Pins an entry that somebody else has pinned.
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

class LimitTable {
 public:
  static constexpr uint32_t kIdsMax = 1u << 20;  // a slot has 20 bits for the number

  // `limits_max` is at most kIdsMax − 1; number 0 is no limit.
  explicit LimitTable(uint32_t limits_max = 1u << 18);
  ~LimitTable();
  LimitTable(const LimitTable&) = delete;
  LimitTable& operator=(const LimitTable&) = delete;

  // ResourceExhausted where `limits_max` different limits are in use. A limit that a rule had before and has again gets
  // another version, so that a bucket can be told to be of the first time.
  absl::StatusOr<LimitHandle> Intern(const algorithm::Limit& limit, uint32_t version = 0);

  // The limit under a number that a live bucket or a handle holds. Lock-free.
  const algorithm::Limit& Get(uint32_t id) const {
    return chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk]->limit;
  }

  uint32_t size() const;
  // Every limit with its number, in no particular order.
  std::vector<std::pair<uint32_t, algorithm::LimitSpec>> List() const;

  // Sweeping, in three steps: BeginSweep; then mark every number found in a bucket; then EndSweep frees what was
  // neither marked, nor pinned, nor given out meanwhile, and returns how many. One sweep at a time.
  std::vector<bool> BeginSweep();
  uint32_t EndSweep(const std::vector<bool>& in_use);

 private:
  static constexpr uint32_t kChunk = 4096;
  using Chunk = std::unique_ptr<LimitEntry>;

  LimitEntry* EntryAt(uint32_t id) const {
    return chunks_[id / kChunk].load(std::memory_order_relaxed)[id % kChunk].get();
  }

  const uint32_t limits_max_;
  // Chunks are never moved or freed while the table lives, so that Get needs no lock.
  std::array<std::atomic<Chunk*>, kIdsMax / kChunk> chunks_{};
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::pair<algorithm::LimitSpec, uint32_t>, uint32_t> by_spec_;  // with its version
  std::vector<uint32_t> free_ids_;
  uint32_t next_id_ = 1;
};

}  // namespace headgate::store
