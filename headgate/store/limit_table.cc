#include "headgate/store/limit_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace headgate::store {

using algorithm::Limit;

namespace {

// The least number of ids for limits of clients that are pinned or wait for a pass.
constexpr uint32_t kClientIdsBeside = 1u << 18;
// How many of the oldest limits of clients are checked for one that is not pinned.
constexpr int kPinnedMax = 64;
// A retired limit is freed within three passes: the current one and two more.
constexpr uint64_t kPassesUntilFree = 3;
constexpr uint64_t kStepsDueMax = 256;

uint32_t ClientIdsEnd(uint32_t limits_max) {
  return std::min(LimitTable::kIdsMax,
                  LimitTable::kRuleIds + limits_max + std::max(limits_max, kClientIdsBeside));
}

}  // namespace

LimitTable::LimitTable(const LimitTableOptions& options)
    : rules_(1, kRuleIds, std::min(options.rule_limits_max, kRuleLimitsMax)),
      clients_(kRuleIds, ClientIdsEnd(std::min(options.client_limits_max, kClientLimitsMax)),
               std::min(options.client_limits_max, kClientLimitsMax)) {}

LimitTable::~LimitTable() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

absl::StatusOr<LimitHandle> LimitTable::Intern(const Limit& limit, uint32_t version,
                                               LimitOwner owner) {
  return Intern(limit, version, owner, Full::kMakeWay);
}

absl::StatusOr<LimitHandle> LimitTable::InternWhereRoom(const Limit& limit, LimitOwner owner) {
  return Intern(limit, 0, owner, Full::kFail);
}

absl::StatusOr<LimitHandle> LimitTable::Intern(const Limit& limit, uint32_t version,
                                               LimitOwner owner, Full full) {
  uint64_t due = 0;
  auto handle = [&] {
    std::lock_guard lock(mutex_);
    const uint64_t serial = last_serial_;
    auto interned = InternLocked(limit, version, owner, full);
    if (last_serial_ != serial || !interned.ok()) due = StepsDue(RoomOf(owner));
    return interned;
  }();
  if (due > 0) scan_(due);
  return handle;
}

absl::StatusOr<LimitHandle> LimitTable::InternLocked(const Limit& limit, uint32_t version,
                                                     LimitOwner owner, Full full) {
  Room& room = RoomOf(owner);
  Key key{{limit.spec(), version}, owner};
  auto found = by_key_.find(key);
  if (found == by_key_.end() && !owner.is_of_clients() &&
      room.in_use >= room.in_use_max - room.in_use_max / 3) {
    key.second = LimitOwner::FurtherRules();
    found = by_key_.find(key);
  }
  const bool is_new = found == by_key_.end();
  const bool comes_into_use =
      is_new || EntryAt(found->second)->retired.load(std::memory_order_relaxed);
  if (comes_into_use && room.in_use >= room.in_use_max) {
    const bool made_way = full == Full::kMakeWay && RetireOldest(room);
    // Clients may exceed their room, because their pinned limits are released soon. The limits
    // of rules may not, because they stay pinned.
    const bool may_exceed = full == Full::kMakeWay && owner.is_of_clients();
    if (!made_way && !may_exceed) {
      return absl::ResourceExhaustedError(
          fmt::format("{} different limits of {} are in use already", room.in_use_max,
                      owner.is_of_clients() ? "clients" : "rules"));
    }
  }
  if (is_new && room.ids_left() == 0) {
    return absl::ResourceExhaustedError(
        fmt::format("{} different limits are in use at this moment", room.in_use + room.retired));
  }
  LimitEntry& entry = is_new ? Create(room, key, limit) : *EntryAt(found->second);
  if (comes_into_use) {
    if (!is_new) --room.retired;
    ++room.in_use;
    entry.retired.store(false, std::memory_order_relaxed);
  } else {
    Unlink(room, entry);
  }
  Link(room, entry);
  entry.idle_pass = 0;
  return LimitHandle(&entry);
}

LimitEntry& LimitTable::Create(Room& room, const Key& key, const Limit& limit) {
  uint32_t id;
  if (!room.free_ids.empty()) {
    id = room.free_ids.back();
    room.free_ids.pop_back();
  } else {
    id = room.next_id++;
  }
  auto& chunk = chunks_[id / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr)
    chunk.store(new Chunk[kChunk], std::memory_order_release);
  auto& place = chunk.load(std::memory_order_relaxed)[id % kChunk];
  place = std::make_unique<LimitEntry>();
  auto& owner = classes_[key.second];
  if (owner == nullptr) {
    owner = std::make_unique<LimitClass>();
    owner->owner = key.second;
  }
  ++owner->limits;
  place->limit = limit;
  place->id = id;
  place->version = key.first.second;
  place->owner = owner.get();
  place->serial = ++last_serial_;
  by_key_.emplace(key, id);
  return *place;
}

// Returns false if no limit can be retired because all are pinned.
bool LimitTable::RetireOldest(Room& room) {
  const bool all = &room == &rules_;
  const uint32_t tries = all ? room.in_use : std::min<uint32_t>(room.in_use, kPinnedMax);
  for (uint32_t i = 0; i < tries; ++i) {
    LimitEntry& entry = *EntryAt(room.oldest);
    Unlink(room, entry);
    if (entry.handles.load(std::memory_order_acquire) != 0) {
      Link(room, entry);
      continue;
    }
    --room.in_use;
    ++room.retired;
    entry.retired.store(true, std::memory_order_relaxed);
    if (&room == &clients_) client_limits_forgotten_.fetch_add(1, std::memory_order_relaxed);
    if (!scan_) Free(room, entry);
    return true;
  }
  return false;
}

// Frees an entry to which no bucket and no handle refers.
void LimitTable::Free(Room& room, LimitEntry& entry) {
  if (entry.retired.load(std::memory_order_relaxed)) {
    --room.retired;
  } else {
    Unlink(room, entry);
    --room.in_use;
  }
  by_key_.erase({{entry.limit.spec(), entry.version}, entry.owner->owner});
  if (--entry.owner->limits == 0) classes_.erase(entry.owner->owner);
  const uint32_t id = entry.id;
  chunks_[id / kChunk].load(std::memory_order_relaxed)[id % kChunk].reset();
  room.free_ids.push_back(id);
}

void LimitTable::Link(Room& room, LimitEntry& entry) {
  entry.older = room.newest;
  entry.newer = 0;
  (room.newest != 0 ? EntryAt(room.newest)->newer : room.oldest) = entry.id;
  room.newest = entry.id;
}

void LimitTable::Unlink(Room& room, LimitEntry& entry) {
  (entry.older != 0 ? EntryAt(entry.older)->newer : room.oldest) = entry.newer;
  (entry.newer != 0 ? EntryAt(entry.newer)->older : room.newest) = entry.older;
}

// The number of steps to do for each new limit, so that all passes end before the free numbers do.
uint64_t LimitTable::StepsDue(const Room& room) const {
  if (!scan_ || room.retired == 0) return 0;
  const uint64_t steps = kPassesUntilFree * (steps_per_pass_ + kIdsMax / kIdsPerStep);
  const uint64_t left = std::max<uint64_t>(1, room.ids_left());
  return std::min(kStepsDueMax, (steps + left - 1) / left);
}

uint64_t LimitTable::BucketsOf(LimitOwner owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = classes_.find(owner);
  return found == classes_.end() ? 0 : found->second->buckets.load(std::memory_order_relaxed);
}

uint32_t LimitTable::size() const {
  std::lock_guard lock(mutex_);
  return rules_.in_use + clients_.in_use;
}

uint32_t LimitTable::client_limits() const {
  std::lock_guard lock(mutex_);
  return clients_.in_use;
}

std::vector<LimitTable::Listed> LimitTable::List() const {
  std::lock_guard lock(mutex_);
  std::vector<Listed> list;
  list.reserve(by_key_.size());
  for (const auto& [key, id] : by_key_) {
    if (EntryAt(id)->retired.load(std::memory_order_relaxed)) continue;
    list.push_back(
        {.id = id, .serial = EntryAt(id)->serial, .spec = key.first.first, .owner = key.second});
  }
  return list;
}

void LimitTable::SetScan(std::function<void(uint64_t)> scan, uint64_t steps_per_pass) {
  scan_ = std::move(scan);
  steps_per_pass_ = steps_per_pass;
}

uint32_t LimitTable::EndPass(const std::vector<bool>& in_use, uint32_t first) {
  std::lock_guard lock(mutex_);
  const uint32_t end = std::min(first + kIdsPerStep, kIdsMax);
  if (chunks_[first / kChunk].load(std::memory_order_relaxed) != nullptr) {
    for (uint32_t id = first; id < end; ++id) {
      LimitEntry* entry = EntryAt(id);
      if (entry == nullptr) continue;
      if (in_use[id] || entry->handles.load(std::memory_order_acquire) != 0) {
        entry->idle_pass = 0;
      } else if (entry->idle_pass != 0 && entry->idle_pass + 1 == pass_) {
        // Idle since before this pass began, so the pass has seen every possible bucket.
        Free(id >= kRuleIds ? clients_ : rules_, *entry);
      } else {
        entry->idle_pass = pass_;
      }
    }
  }
  if (end < kIdsMax) return end;
  ++pass_;
  return 0;
}

}  // namespace headgate::store
