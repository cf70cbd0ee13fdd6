#include "headgate/limiter/lease/lease_table.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "headgate/store/fair_victim.h"
#include "headgate/store/pages.h"

namespace headgate::limiter::lease {

using base::BootTime;
using base::Hash128;

LeaseTable::LeaseTable(uint32_t keys_max, base::Duration idle_after, void* records)
    : idle_after_(idle_after),
      bytes_(BytesOf(keys_max)),
      sets_(SetsFor(keys_max)),
      records_(static_cast<LeaseRecord*>(
          records != nullptr ? records : store::MapPages(bytes_, store::HugePages::kLater))),
      owns_pages_(records == nullptr) {}

LeaseTable::~LeaseTable() {
  ForEach([](LeaseRecord& record) { Destroy(record); });
  if (owns_pages_) store::UnmapPages(records_, bytes_);
}

size_t LeaseTable::SetsFor(uint32_t keys_max) {
  return std::bit_ceil(std::max<size_t>(1, (size_t{keys_max} + kWays - 1) / kWays));
}

size_t LeaseTable::BytesOf(uint32_t keys_max) {
  return SetsFor(keys_max) * kWays * sizeof(LeaseRecord);
}

void LeaseTable::PrefetchRecord(const Hash128& key) const {
  const size_t set = SetOf(key);
  const uint32_t print = PrintOf(key);
  for (uint32_t way = 0; way < kWays; ++way) {
    // Another thread may be changing the print. The wrong record is then fetched, which does no
    // harm.
    if (std::atomic_ref(const_cast<uint32_t&>(sets_[set].prints[way]))
            .load(std::memory_order_relaxed) != print)
      continue;
    const auto* const line = reinterpret_cast<const char*>(&records_[set * kWays + way]);
    __builtin_prefetch(line, /*write*/ 1);
    __builtin_prefetch(line + 64, /*write*/ 1);
  }
}

LeaseRecord* LeaseTable::Insert(const Hash128& key, const store::LimitEntry& limit, BootTime now) {
  const size_t set = SetOf(key);
  LeaseRecord* record = Victim(set, *limit.owner, now);
  if (record == nullptr) return nullptr;
  uint32_t& print = sets_[set].prints[IndexOf(*record) % kWays];
  if (print != 0) {
    evicted_.store(evicted() + 1, std::memory_order_relaxed);
    Destroy(*record);
  } else if (++keys_ == sets_.size() * kWays / 16) {
    // Now almost every 2 MiB have been touched.
    store::MergePages(records_, bytes_);
  }
  std::atomic_ref(print).store(PrintOf(key), std::memory_order_relaxed);
  std::construct_at(record);
  record->key = key;
  SetLimit(*record, limit);
  return record;
}

void LeaseTable::SetLimit(LeaseRecord& record, const store::LimitEntry& limit) {
  if (record.limit_pin)
    record.limit_pin->owner->lease_records.fetch_sub(1, std::memory_order_relaxed);
  limit.owner->lease_records.fetch_add(1, std::memory_order_relaxed);
  record.limit = &limit;
  record.limit_pin = store::LimitHandle::Pin(limit);
}

void LeaseTable::Destroy(LeaseRecord& record) {
  record.limit_pin->owner->lease_records.fetch_sub(1, std::memory_order_relaxed);
  std::destroy_at(&record);
}

// A free place; or the place of a key that holds no lease: first of a key that has been idle for
// long, then, in the class that follows the most keys, of the key that was asked for longest ago.
LeaseRecord* LeaseTable::Victim(size_t set, const store::LimitClass& incoming, BootTime now) {
  LeaseRecord* idle = nullptr;
  LeaseRecord* victim = nullptr;
  store::FairVictim choice(incoming, incoming.lease_records.load(std::memory_order_relaxed));
  for (uint32_t way = 0; way < kWays; ++way) {
    LeaseRecord& record = records_[set * kWays + way];
    if (sets_[set].prints[way] == 0) return &record;
    if (record.look_at.ns != 0 || record.asked_number != 0 || !record.leases.empty()) continue;
    if (record.taken_at + idle_after_ < now) {
      if (idle == nullptr || record.taken_at < idle->taken_at) idle = &record;
      continue;
    }
    const store::LimitClass& owner = *record.limit_pin->owner;
    if (choice.Offer(owner, owner.lease_records.load(std::memory_order_relaxed),
                     static_cast<uint64_t>(record.taken_at.ns))) {
      victim = &record;
    }
  }
  return idle != nullptr ? idle : victim;
}

}  // namespace headgate::limiter::lease
