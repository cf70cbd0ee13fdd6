#include "headgate/limiter/lease/lease_books.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "headgate/base/check.h"
#include "headgate/store/pages.h"

namespace headgate::limiter::lease {

using algorithm::Cost;
using base::BootTime;
using base::Hash128;
using store::LimitEntry;

namespace {

using Lock = std::lock_guard<store::SpinLock>;

constexpr uint64_t kPage = 4096;

uint32_t KeysOfPart(uint32_t keys_max, uint32_t parts) {
  return std::max<uint32_t>(1, (keys_max + parts - 1) / parts);
}

uint64_t InPages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void LeaseMessage::Keep(const LeaseAction& action) {
  key = action.key;
  name.assign(action.name);
  limit = store::LimitHandle::Pin(*action.limit);
  ask = action.ask;
  std::copy(action.ask.reports.begin(), action.ask.reports.end(), reports.begin());
  ask.reports = std::span(reports).first(action.ask.reports.size());
}

// One mapping for all, so that it is large enough for huge pages.
LeaseBooks::LeaseBooks(const LeaseBookOptions& options, uint32_t parts)
    : ttl_(options.ttl),
      node_(options.node),
      records_bytes_(InPages(LeaseBook::BytesOf(KeysOfPart(options.keys_max, parts)))),
      records_(static_cast<std::byte*>(
          store::MapPages(parts * records_bytes_, store::HugePages::kLater))) {
  HEADGATE_CHECK(std::has_single_bit(parts));
  LeaseBookOptions of_part = options;
  of_part.keys_max = KeysOfPart(options.keys_max, parts);
  parts_.reserve(parts);
  for (uint32_t i = 0; i < parts; ++i) {
    parts_.push_back(std::make_unique<Part>(of_part, records_ + i * records_bytes_));
  }
}

LeaseBooks::~LeaseBooks() {
  const uint64_t bytes = parts_.size() * records_bytes_;
  parts_.clear();
  store::UnmapPages(records_, bytes);
}

namespace {

// The action is kept, to be sent when the lock is released.
LeaseVerdict Kept(LeaseVerdict verdict, LeaseBooks::Keep keep) {
  if (verdict.action != nullptr) [[unlikely]] {
    keep(*verdict.action);
    verdict.action = nullptr;
  }
  return verdict;
}

}  // namespace

LeaseVerdict LeaseBooks::Take(const Hash128& key, const LimitEntry& limit, Cost cost, Namer name,
                              BootTime now, Keep keep) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return Kept(part.book.Take(key, limit, cost, name, now), keep);
}

LeaseVerdict LeaseBooks::TakeAgain(const Hash128& key, const LimitEntry& limit, Cost cost,
                                   Namer name, BootTime now, Keep keep) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return Kept(part.book.TakeAgain(key, limit, cost, name, now), keep);
}

std::optional<algorithm::Decision> LeaseBooks::Peek(const Hash128& key, const LimitEntry& limit,
                                                    Cost cost, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.Peek(key, limit, cost, now);
}

uint64_t LeaseBooks::Spendable(const Hash128& key, const LimitEntry& limit, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.Spendable(key, limit, now);
}

bool LeaseBooks::OnExact(const Hash128& key, const LimitEntry& limit, Cost cost,
                         const store::SharedAnswer& answer, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.OnExact(key, limit, cost, answer, now);
}

bool LeaseBooks::IsDenied(const Hash128& key, const LimitEntry& limit, Cost cost,
                          BootTime now) const {
  const Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.IsDenied(key, limit, cost, now);
}

base::Duration LeaseBooks::DeniedFor(const Hash128& key, const LimitEntry& limit,
                                     BootTime now) const {
  const Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.DeniedFor(key, limit, now);
}

void LeaseBooks::OnGrant(const Hash128& key, uint64_t number, const store::SharedAnswer& answer,
                         BootTime now, Keep keep) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  if (const LeaseAction* next = part.book.OnGrant(key, number, answer, now)) keep(*next);
}

Cost LeaseBooks::GiveBack(const Hash128& key, Cost cost, uint64_t lease, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.GiveBack(key, cost, lease, now);
}

Cost LeaseBooks::Refund(const Hash128& key, const LimitEntry& limit, Cost cost,
                        algorithm::Decision& decision, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  return part.book.Refund(key, limit, cost, decision, now);
}

void LeaseBooks::OnRefunded(const Hash128& key, uint64_t remaining) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  part.book.OnRefunded(key, remaining);
}

void LeaseBooks::OnOverdrawn(const Hash128& key, BootTime now) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  part.book.OnOverdrawn(key, now);
}

void LeaseBooks::OnReset(const Hash128& key) {
  Part& part = PartOf(key);
  const Lock lock(part.lock);
  part.book.OnReset(key);
}

void LeaseBooks::DropAll() {
  for (const auto& part : parts_) {
    const Lock lock(part->lock);
    part->book.DropAll();
  }
}

bool LeaseBooks::OnTime(uint32_t loop, uint32_t loops, BootTime now, Keep keep) {
  bool done = true;
  for (size_t i = loop; i < parts_.size(); i += loops) {
    const Lock lock(parts_[i]->lock);
    done = parts_[i]->book.OnTime(now, keep, kLooksAtOnce) && done;
  }
  return done;
}

BootTime LeaseBooks::next_wake(uint32_t loop, uint32_t loops) const {
  BootTime next{INT64_MAX};
  for (size_t i = loop; i < parts_.size(); i += loops) {
    const Lock lock(parts_[i]->lock);
    next = std::min(next, parts_[i]->book.next_wake());
  }
  return next;
}

void LeaseBooks::Close() {
  for (const auto& part : parts_) {
    const Lock lock(part->lock);
    part->book.Close();
  }
}

bool LeaseBooks::ReturnNext(size_t& part, BootTime now, Keep keep) {
  for (size_t looked = 0; looked < parts_.size(); ++looked, ++part) {
    Part& of = *parts_[part % parts_.size()];
    const Lock lock(of.lock);
    if (const LeaseAction* action = of.book.ReturnNext(now)) {
      keep(*action);
      return true;
    }
  }
  return false;
}

LeaseTotals LeaseBooks::totals() const {
  LeaseTotals totals;
  for (const auto& part : parts_) {
    const LeaseCounters& counters = part->book.counters();
    totals.asked += counters.asked.load(std::memory_order_relaxed);
    totals.granted += counters.granted.load(std::memory_order_relaxed);
    totals.spent += counters.spent.load(std::memory_order_relaxed);
    totals.returned += counters.returned.load(std::memory_order_relaxed);
    totals.expired_unspent += counters.expired_unspent.load(std::memory_order_relaxed);
    totals.late_grants += counters.late_grants.load(std::memory_order_relaxed);
    totals.evicted += part->book.keys_evicted();
    totals.not_followed += counters.not_followed.load(std::memory_order_relaxed);
    totals.held += counters.held();
  }
  return totals;
}

}  // namespace headgate::limiter::lease
