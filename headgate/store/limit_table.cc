#include "headgate/store/limit_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace headgate::store {

LimitTable::LimitTable(uint32_t limits_max) : limits_max_(std::min(limits_max, kIdsMax - 1)) {}

LimitTable::~LimitTable() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

absl::StatusOr<LimitHandle> LimitTable::Intern(const algorithm::Limit& limit, uint32_t version) {
  std::lock_guard lock(mutex_);
  if (const auto found = by_spec_.find({limit.spec(), version}); found != by_spec_.end()) {
    LimitEntry* entry = EntryAt(found->second);
    entry->touched = true;
    return LimitHandle(entry);
  }
  if (by_spec_.size() >= limits_max_) {
    return absl::ResourceExhaustedError(fmt::format("{} different limits are in use already", limits_max_));
  }
  uint32_t id;
  if (!free_ids_.empty()) {
    id = free_ids_.back();
    free_ids_.pop_back();
  } else {
    id = next_id_++;
  }
  auto& chunk = chunks_[id / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Chunk[kChunk], std::memory_order_release);
  auto& place = chunk.load(std::memory_order_relaxed)[id % kChunk];
  place = std::make_unique<LimitEntry>();
  place->limit = limit;
  place->id = id;
  place->version = version;
  place->touched = true;
  by_spec_.emplace(std::pair(limit.spec(), version), id);
  return LimitHandle(place.get());
}

uint32_t LimitTable::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(by_spec_.size());
}

std::vector<std::pair<uint32_t, algorithm::LimitSpec>> LimitTable::List() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<uint32_t, algorithm::LimitSpec>> list;
  list.reserve(by_spec_.size());
  for (const auto& [spec_and_version, id] : by_spec_) list.emplace_back(id, spec_and_version.first);
  return list;
}

std::vector<bool> LimitTable::BeginSweep() {
  std::lock_guard lock(mutex_);
  for (const auto& [spec, id] : by_spec_) EntryAt(id)->touched = false;
  return std::vector<bool>(next_id_, false);
}

uint32_t LimitTable::EndSweep(const std::vector<bool>& in_use) {
  std::lock_guard lock(mutex_);
  uint32_t freed = 0;
  absl::erase_if(by_spec_, [&](const auto& item) {
    const uint32_t id = item.second;
    const LimitEntry* entry = EntryAt(id);
    if (entry->touched || entry->handles.load(std::memory_order_acquire) != 0) return false;
    if (id >= in_use.size() || in_use[id]) return false;
    chunks_[id / kChunk].load(std::memory_order_relaxed)[id % kChunk].reset();
    free_ids_.push_back(id);
    ++freed;
    return true;
  });
  return freed;
}

}  // namespace headgate::store
