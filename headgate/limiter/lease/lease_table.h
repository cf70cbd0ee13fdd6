// The records of the keys that a lease book follows: sets of eight places, a fixed number of them.
// Not thread-safe, except for the prefetches.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/lease/lease_record.h"
#include "headgate/store/limit_class.h"

namespace headgate::limiter::lease {

class LeaseTable {
 public:
  // `records`: zeroed pages for BytesOf(keys_max), which outlive the table; null: the table maps
  // its own. A key that was not asked for during `idle_after` gives up its place first.
  LeaseTable(uint32_t keys_max, base::Duration idle_after, void* records);
  ~LeaseTable();
  LeaseTable(const LeaseTable&) = delete;

  static size_t BytesOf(uint32_t keys_max);

  // Prefetches the record of a key that is about to be asked for, in two passes: call PrefetchSet
  // for all keys first. Callable from any thread.
  void PrefetchSet(const base::Hash128& key) const { __builtin_prefetch(&sets_[SetOf(key)]); }
  void PrefetchRecord(const base::Hash128& key) const;

  const LeaseRecord* Find(const base::Hash128& key) const {
    const size_t set = SetOf(key);
    const uint32_t print = PrintOf(key);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (sets_[set].prints[way] != print) continue;
      const LeaseRecord& record = records_[set * kWays + way];
      if (record.key == key) return &record;
    }
    return nullptr;
  }
  LeaseRecord* Find(const base::Hash128& key) {
    return const_cast<LeaseRecord*>(std::as_const(*this).Find(key));
  }
  // Null too if the record is of another limit.
  const LeaseRecord* Find(const base::Hash128& key, const store::LimitEntry& limit) const {
    const LeaseRecord* const record = Find(key);
    return record != nullptr && record->limit == &limit ? record : nullptr;
  }
  LeaseRecord* Find(const base::Hash128& key, const store::LimitEntry& limit) {
    return const_cast<LeaseRecord*>(std::as_const(*this).Find(key, limit));
  }

  // A new record for a key that has none, with this limit; perhaps in the place of another key.
  // Null if all eight places hold leases, or belong to classes that follow no more keys than this
  // one.
  LeaseRecord* Insert(const base::Hash128& key, const store::LimitEntry& limit, base::BootTime now);
  // Every record has its limit from here, so that the classes of limits know their records.
  static void SetLimit(LeaseRecord& record, const store::LimitEntry& limit);

  uint32_t IndexOf(const LeaseRecord& record) const {
    return static_cast<uint32_t>(&record - records_);
  }
  LeaseRecord& At(uint32_t index) { return records_[index]; }
  // Calls `f(record)` for every key.
  template <typename F>
  void ForEach(F f) {
    for (size_t i = 0; i < sets_.size() * kWays; ++i) {
      if (sets_[i / kWays].prints[i % kWays] != 0) f(records_[i]);
    }
  }

  uint32_t keys() const { return keys_; }
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kWays = 8;

  // 32 bits of the hash of each key; 0: the place is free.
  struct alignas(sizeof(uint32_t) * kWays) Set {
    std::array<uint32_t, kWays> prints{};
  };

  static uint32_t PrintOf(const base::Hash128& key) {
    const auto print = static_cast<uint32_t>(key.high);
    return print != 0 ? print : 1;
  }
  static size_t SetsFor(uint32_t keys_max);
  size_t SetOf(const base::Hash128& key) const { return key.low & (sets_.size() - 1); }
  LeaseRecord* Victim(size_t set, const store::LimitClass& incoming, base::BootTime now);
  static void Destroy(LeaseRecord& record);

  const base::Duration idle_after_;
  const size_t bytes_;
  std::vector<Set> sets_;
  LeaseRecord* const records_;  // kWays for each set; a record exists if it has a print
  const bool owns_pages_;
  uint32_t keys_ = 0;
  std::atomic<uint64_t> evicted_{0};  // keys that lost their place to others
};

}  // namespace headgate::limiter::lease
