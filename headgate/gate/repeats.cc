#include "headgate/gate/repeats.h"

#include <algorithm>

namespace headgate::gate {
namespace {

base::Duration Less(base::Duration duration, base::Duration elapsed) {
  return std::max(base::Duration(0), duration - elapsed);
}

}  // namespace

bool Repeats::Find(const base::Hash128& id, base::Instant now, Verdict& verdict,
                   std::string& policy) {
  Shard& shard = ShardOf(id);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.verdicts.find(id);
  if (found == shard.verdicts.end()) return false;
  const Remembered& remembered = found->second;
  const base::Duration elapsed = std::max(base::Duration(0), now - remembered.decided_at);
  if (now >= remembered.until) return false;
  verdict = remembered.verdict;
  verdict.wait = Less(verdict.wait, elapsed);
  if (verdict.limit) {
    wire::RateLimitState& limit = *verdict.limit;
    policy = remembered.policy;
    limit.policy = policy;
    limit.reset_after = Less(limit.reset_after, elapsed);
    if (limit.more_after) limit.more_after = Less(*limit.more_after, elapsed);
    if (limit.retry_after) limit.retry_after = Less(*limit.retry_after, elapsed);
  }
  return true;
}

void Repeats::Remember(const base::Hash128& id, const Verdict& verdict, base::Instant now) {
  Shard& shard = ShardOf(id);
  const std::lock_guard lock(shard.mutex);
  while (!shard.by_age.empty()) {
    const auto& [until, oldest] = shard.by_age.front();
    const bool expired = now >= until;
    if (!expired && shard.by_age.size() < options_.entries_max / kShards) break;
    const auto place = shard.verdicts.find(oldest);
    // Otherwise the id has been remembered again, with an item of its own.
    if (place != shard.verdicts.end() && place->second.until == until) {
      if (!expired) forgotten_.fetch_add(1, std::memory_order_relaxed);
      shard.verdicts.erase(place);
    }
    shard.by_age.pop_front();
  }
  const auto [place, is_new] = shard.verdicts.try_emplace(id);
  // An expired verdict can still be stored behind one that is kept for longer, because of its wait.
  if (!is_new && now < place->second.until) return;
  const base::Instant until = now + verdict.wait + options_.window;
  shard.by_age.emplace_back(until, id);
  place->second = {.verdict = verdict, .policy = {}, .decided_at = now, .until = until};
  if (verdict.limit) place->second.policy = verdict.limit->policy;
}

}  // namespace headgate::gate
