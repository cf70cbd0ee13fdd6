#include "headgate/limiter/size_debts.h"

#include <algorithm>
#include <limits>

#include "headgate/base/wide.h"

namespace headgate::limiter {

using algorithm::Cost;

namespace {

// The longest one of a calendar window.
uint64_t PeriodOf(const algorithm::Limit& limit) {
  using std::chrono::hours;
  switch (limit.spec().align) {
    case algorithm::Align::kCalendarMonth:
      return static_cast<uint64_t>(base::Duration(hours(31 * 24)).count());
    case algorithm::Align::kCalendarYear:
      return static_cast<uint64_t>(base::Duration(hours(366 * 24)).count());
    default:
      return limit.period();
  }
}

}  // namespace

SizeDebts::Added SizeDebts::Add(const base::Hash128& key, Cost cost) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found != shard.entries.end()) {
    Cost& owed = found->second.owed;
    owed += std::min(cost, std::numeric_limits<Cost>::max() - owed);
    return Added::kPaid;
  }
  if (shard.entries.size() >= kKeysMax / kShards) return Added::kNoPlace;
  shard.entries.emplace(key, Entry{.owed = cost});
  keys_.fetch_add(1, std::memory_order_relaxed);
  return Added::kToPay;
}

Cost SizeDebts::OwedBy(const base::Hash128& key) const {
  const Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  return found == shard.entries.end() ? 0 : found->second.owed;
}

Cost SizeDebts::Pay(const base::Hash128& key, Cost cost) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return cost;
  const Cost paid = std::min(cost, found->second.owed);
  found->second.owed -= paid;
  return cost - paid;
}

void SizeDebts::Deny(const base::Hash128& key, base::Instant due) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return;
  if (!found->second.denied) denied_.fetch_add(1, std::memory_order_relaxed);
  found->second.denied = true;
  found->second.due = due;
}

void SizeDebts::Erase(Shard& shard, Entries::iterator entry) {
  if (entry->second.denied) denied_.fetch_sub(1, std::memory_order_relaxed);
  shard.entries.erase(entry);
  keys_.fetch_sub(1, std::memory_order_relaxed);
}

bool SizeDebts::EraseIfPaid(const base::Hash128& key) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return true;
  if (found->second.owed > 0) return false;
  Erase(shard, found);
  return true;
}

Cost SizeDebts::Forget(const base::Hash128& key) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return 0;
  const Cost owed = found->second.owed;
  Erase(shard, found);
  return owed;
}

Cost SizeDebts::Cancel(const base::Hash128& key, Cost cost) {
  if (keys() == 0) return 0;
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return 0;
  const Cost cancelled = std::min(cost, found->second.owed);
  found->second.owed -= cancelled;
  return cancelled;
}

std::optional<SizeDebts::Debt> SizeDebts::Find(const base::Hash128& key) const {
  const Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end() || !found->second.denied || found->second.owed == 0)
    return std::nullopt;
  return Debt{.owed = found->second.owed, .due = found->second.due};
}

algorithm::Decision DeniedByDebt(const algorithm::Limit& limit, const SizeDebts::Debt& debt,
                                 Cost cost, base::Instant now) {
  algorithm::Decision decision{.allowed = false, .limit = limit.capacity(), .remaining = 0};
  if (cost > limit.capacity() || limit.denies_all()) {
    decision.retry_after = algorithm::kNever;
    return decision;
  }
  // At `due` the bucket pays as much as it can contain.
  const Cost at_due = std::min(debt.owed, limit.capacity());
  const base::uint128 rest = base::uint128{debt.owed} - at_due + cost;
  const uint64_t period = PeriodOf(limit);
  const base::uint128 more =
      algorithm::IsBucket(limit.algorithm())
          ? base::CeilDiv(rest * period, uint64_t{limit.requests()})
          // A window pays its whole limit; the rest fits beside the last part of the debt, or not.
          : (base::CeilDiv(base::uint128{debt.owed} + cost, limit.capacity()) - 1) * period;
  constexpr auto kMost = static_cast<uint64_t>(algorithm::kNever.count()) / 4;
  const base::Duration until_due = std::max(base::Duration(0), debt.due - now);
  decision.reset_after =
      until_due +
      base::Duration(static_cast<int64_t>(more > kMost ? kMost : static_cast<uint64_t>(more)));
  decision.retry_after = decision.reset_after;
  return decision;
}

}  // namespace headgate::limiter
