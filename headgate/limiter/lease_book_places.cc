// The places of the keys in a lease book: sets of eight places, and the choice of the key that is
// evicted when all eight are taken.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "headgate/limiter/lease_book.h"
#include "headgate/store/fair_victim.h"
#include "headgate/store/pages.h"

namespace headgate::limiter {

using base::BootTime;
using base::Hash128;

namespace {

uint32_t PrintOf(const Hash128& key) {
  const auto print = static_cast<uint32_t>(key.high);
  return print != 0 ? print : 1;
}

}  // namespace

void LeaseBook::PrefetchSet(const Hash128& key) const { __builtin_prefetch(&sets_[SetOf(key)]); }

void LeaseBook::PrefetchRecord(const Hash128& key) const {
  const size_t set = SetOf(key);
  const uint32_t print = PrintOf(key);
  for (uint32_t way = 0; way < kWays; ++way) {
    // Another thread may be changing it; then what is fetched is of no use, and of no harm.
    if (std::atomic_ref(const_cast<uint32_t&>(sets_[set].prints[way]))
            .load(std::memory_order_relaxed) != print)
      continue;
    const auto* const line = reinterpret_cast<const char*>(&records_[set * kWays + way]);
    __builtin_prefetch(line, /*write*/ 1);
    __builtin_prefetch(line + 64, /*write*/ 1);
  }
}

const LeaseBook::Record* LeaseBook::Find(const Hash128& key) const {
  const size_t set = SetOf(key);
  const uint32_t print = PrintOf(key);
  for (uint32_t way = 0; way < kWays; ++way) {
    if (sets_[set].prints[way] != print) continue;
    const Record& record = records_[set * kWays + way];
    if (record.key == key) return &record;
  }
  return nullptr;
}

LeaseBook::Record* LeaseBook::Insert(const Hash128& key, const store::LimitEntry& limit,
                                     BootTime now) {
  const size_t set = SetOf(key);
  Record* record = Victim(set, *limit.owner, now);
  if (record == nullptr) return nullptr;
  uint32_t& print = sets_[set].prints[static_cast<size_t>(record - records_) % kWays];
  if (print != 0) {
    counters_.evicted.store(counters_.evicted.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
    Drop(*record);
  } else {
    // Every 2 MiB have long been touched.
    if (++keys_followed_ == sets_.size() * kWays / 16) {
      store::MergePages(records_, BytesOf(options_.keys_max));
    }
  }
  std::atomic_ref(print).store(PrintOf(key), std::memory_order_relaxed);
  std::construct_at(record);
  record->key = key;
  SetLimit(*record, limit);
  return record;
}

void LeaseBook::Drop(Record& record) {
  record.limit_pin->owner->lease_records.fetch_sub(1, std::memory_order_relaxed);
  std::destroy_at(&record);
}

// A free place, or that of a key that holds no lease: one that has been idle for long; else, of the
// class that follows most keys, the one that was asked for longest ago. Null where all hold leases,
// or are of classes that follow no more.
LeaseBook::Record* LeaseBook::Victim(size_t set, const store::LimitClass& incoming, BootTime now) {
  Record* idle = nullptr;
  Record* victim = nullptr;
  store::FairVictim choice(incoming, incoming.lease_records.load(std::memory_order_relaxed));
  for (uint32_t way = 0; way < kWays; ++way) {
    Record& record = records_[set * kWays + way];
    if (sets_[set].prints[way] == 0) return &record;
    if (record.queued || record.asked_number != 0 || !record.leases.empty()) continue;
    // A key that is being denied is worth remembering.
    const BootTime last =
        record.denied_cost != 0 ? std::max(record.taken_at, record.denied_until) : record.taken_at;
    if (last + options_.ttl < now) {
      if (idle == nullptr || record.taken_at < idle->taken_at) idle = &record;
      continue;
    }
    const store::LimitClass& owner = *record.limit_pin->owner;
    if (choice.Offer(owner, owner.lease_records.load(std::memory_order_relaxed),
                     static_cast<uint64_t>(last.ns))) {
      victim = &record;
    }
  }
  return idle != nullptr ? idle : victim;
}

}  // namespace headgate::limiter
