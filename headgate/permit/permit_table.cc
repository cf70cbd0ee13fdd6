#include "headgate/permit/permit_table.h"

#include <algorithm>

namespace headgate::permit {
namespace {

constexpr size_t kSweepAtLeast = 64;
// A shard of a full table is swept at most this often, so that a flood of keys does not pay for a
// sweep each.
constexpr base::Duration kFullSweepEvery = std::chrono::milliseconds(100);

bool TakeOne(std::atomic<size_t>& count, size_t max) {
  size_t seen = count.load(std::memory_order_relaxed);
  while (seen < max) {
    if (count.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

PermitTable::PermitTable(const PermitTableOptions& options)
    : keys_max_(options.keys_max), permits_max_(options.permits_max) {
  for (Shard& shard : shards_) shard.sweep_at = kSweepAtLeast;
}

Answer PermitTable::Do(const base::Hash128& key, const Ask& ask, base::Instant now) {
  Shard& shard = ShardOf(key);
  Answer answer = DoInShard(shard, key, ask, now);
  if (answer.outcome != Answer::Outcome::kNoRoom) [[likely]]
    return answer;
  const uint32_t expired =
      answer.expired + MakeRoom(static_cast<size_t>(&shard - shards_.data()), now);
  answer = DoInShard(shard, key, ask, now);
  answer.expired += expired;
  if (answer.outcome == Answer::Outcome::kNoRoom) refused_.fetch_add(1, std::memory_order_relaxed);
  return answer;
}

Answer PermitTable::DoInShard(Shard& shard, const base::Hash128& key, const Ask& ask,
                              base::Instant now) {
  const bool acquires = ask.kind == Ask::Kind::kAcquire && ask.max > 0;
  const std::lock_guard<std::mutex> lock(shard.mutex);
  auto found = shard.keys.find(key);
  const bool is_new = found == shard.keys.end();
  if (is_new && !acquires) return PermitSet().Do(ask, now);
  uint32_t expired = 0;
  if (is_new && shard.keys.size() >= shard.sweep_at) {
    expired = Sweep(shard, now);
    shard.sweep_at = std::max(kSweepAtLeast, 2 * shard.keys.size());
  }
  const bool has_permit = acquires && TakeOne(permits_, permits_max_);
  if (is_new) {
    if (!has_permit || !TakeOne(keys_, keys_max_)) {
      if (has_permit) permits_.fetch_sub(1, std::memory_order_relaxed);
      return {.outcome = Answer::Outcome::kNoRoom, .expired = expired};
    }
    found = shard.keys.try_emplace(key).first;
  }
  // Without room, an id that holds a permit is renewed, but none is added.
  const bool only_renews = acquires && !has_permit;
  Ask bounded = ask;
  if (only_renews) bounded.max = 0;
  PermitSet& permits = found->second;
  const size_t before = permits.permits().size() + (has_permit ? 1 : 0);
  Answer answer = permits.Do(bounded, now);
  permits_.fetch_sub(before - permits.permits().size(), std::memory_order_relaxed);
  answer.expired += expired;
  if (only_renews && answer.outcome == Answer::Outcome::kFull && answer.in_flight < ask.max)
    answer.outcome = Answer::Outcome::kNoRoom;
  if (permits.empty()) {
    shard.keys.erase(found);
    keys_.fetch_sub(1, std::memory_order_relaxed);
  }
  return answer;
}

bool PermitTable::HasRoom() const {
  return keys_.load(std::memory_order_relaxed) < keys_max_ &&
         permits_.load(std::memory_order_relaxed) < permits_max_;
}

// Sweeps shard after shard until one more key and one more permit have room. Returns the number of
// permits that had ended.
uint32_t PermitTable::MakeRoom(size_t first_shard, base::Instant now) {
  uint32_t expired = 0;
  for (size_t i = 0; i < kShards && !HasRoom(); ++i) {
    Shard& shard = shards_[(first_shard + i) % kShards];
    const auto swept_at =
        base::Instant::FromNanos(shard.swept_full_ns.load(std::memory_order_relaxed));
    if (swept_at.ns != 0 && now - swept_at < kFullSweepEvery) continue;
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.swept_full_ns.store(now.ns, std::memory_order_relaxed);
    expired += Sweep(shard, now);
  }
  return expired;
}

uint32_t PermitTable::Sweep(Shard& shard, base::Instant now) {
  uint32_t expired = 0;
  const size_t before = shard.keys.size();
  absl::erase_if(shard.keys, [&](auto& entry) {
    expired += entry.second.Do({.kind = Ask::Kind::kPeek}, now).expired;
    return entry.second.empty();
  });
  permits_.fetch_sub(expired, std::memory_order_relaxed);
  keys_.fetch_sub(before - shard.keys.size(), std::memory_order_relaxed);
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

}  // namespace headgate::permit
