#include "headgate/permit/permit_table.h"

#include <algorithm>

namespace headgate::permit {
namespace {

constexpr size_t kSweepAtLeast = 64;
// A full shard is swept at most this often, so that a flood of keys does not pay for a sweep each.
constexpr base::Duration kFullSweepEvery = std::chrono::milliseconds(100);

size_t PartOf(size_t all, size_t parts) { return std::max<size_t>(1, all / parts); }

}  // namespace

PermitTable::PermitTable(const PermitTableOptions& options)
    : keys_max_(PartOf(options.keys_max, kShards)),
      permits_max_(PartOf(options.permits_max, kShards)) {
  for (Shard& shard : shards_) shard.sweep_at = std::min(kSweepAtLeast, keys_max_);
}

Answer PermitTable::Do(const base::Hash128& key, const Ask& ask, base::Instant now) {
  Shard& shard = ShardOf(key);
  const std::lock_guard<std::mutex> lock(shard.mutex);
  auto found = shard.keys.find(key);
  uint32_t expired = 0;
  if (ask.kind == Ask::Kind::kAcquire && ask.max > 0) {
    const bool grows = shard.permits >= permits_max_;
    const bool is_new = found == shard.keys.end();
    if (grows || (is_new && shard.keys.size() >= shard.sweep_at)) {
      if (!MakeRoom(shard, now, expired)) {
        ++shard.refused;
        return {.outcome = Answer::Outcome::kNoRoom, .expired = expired};
      }
      found = shard.keys.find(key);
    }
    if (found == shard.keys.end()) found = shard.keys.try_emplace(key).first;
  }
  if (found == shard.keys.end()) {
    Answer answer = PermitSet().Do(ask, now);
    answer.expired = expired;
    return answer;
  }
  const size_t before = found->second.permits().size();
  Answer answer = found->second.Do(ask, now);
  answer.expired += expired;
  shard.permits += found->second.permits().size();
  shard.permits -= before;
  if (found->second.empty()) shard.keys.erase(found);
  return answer;
}

// Whether one more key and one more permit have room.
bool PermitTable::MakeRoom(Shard& shard, base::Instant now, uint32_t& expired) const {
  const auto has_room = [&] {
    return shard.keys.size() < keys_max_ && shard.permits < permits_max_;
  };
  if (!has_room()) {
    if (shard.swept_full_at.ns != 0 && now - shard.swept_full_at < kFullSweepEvery) return false;
    shard.swept_full_at = now;
  }
  expired += Sweep(shard, now);
  shard.sweep_at = std::min(keys_max_, std::max(kSweepAtLeast, 2 * shard.keys.size()));
  return has_room();
}

uint32_t PermitTable::Sweep(Shard& shard, base::Instant now) {
  uint32_t expired = 0;
  absl::erase_if(shard.keys, [&](auto& entry) {
    expired += entry.second.Do({.kind = Ask::Kind::kLook}, now).expired;
    return entry.second.empty();
  });
  shard.permits -= expired;
  return expired;
}

uint64_t PermitTable::CountAt(base::Instant now) const {
  uint64_t count = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    for (const auto& [key, permits] : shard.keys) count += permits.CountAt(now);
  }
  return count;
}

uint64_t PermitTable::refused() const {
  uint64_t refused = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    refused += shard.refused;
  }
  return refused;
}

}  // namespace headgate::permit
