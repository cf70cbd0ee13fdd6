#include "headgate/limiter/size_debts.h"

#include <algorithm>
#include <limits>

#include "headgate/base/wide.h"

namespace headgate::limiter {

using algorithm::Cost;

namespace {

// The longest one of a calendar window.
uint64_t LongestPeriodOf(const algorithm::Limit& limit) {
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

// From `due`, when the counter has just taken as much of the debt as fits, until the request fits.
// The counter then holds `capacity` at most. It has room for a whole `capacity` again at the
// beginning of the window after the next.
base::uint128 CounterNeeds(const algorithm::Limit& limit, Cost owed, Cost cost, base::Instant due) {
  const base::uint128 period = limit.period();
  const Cost capacity = limit.capacity();
  const Cost rest = owed - std::min(owed, capacity);
  const Cost last = rest % capacity;
  const base::uint128 window_rest = period - static_cast<uint64_t>(due.ns) % limit.period();
  const base::uint128 next_window = window_rest + base::uint128{rest / capacity} * 2 * period;
  // How far in a window after a full one this many units have room.
  const auto room_for = [&](Cost units) { return base::CeilDiv(period * units, capacity); };
  if (last == 0) return next_window + room_for(cost);
  if (cost <= capacity - last) return next_window + room_for(last + cost);
  return next_window + period + room_for(cost);
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
  const base::Instant due = std::max(debt.due, now);
  base::uint128 more;
  if (algorithm::IsBucket(limit.algorithm())) {
    // At `due` the bucket pays as much as it can contain.
    const base::uint128 rest = base::uint128{debt.owed} - std::min(debt.owed, limit.capacity());
    more = base::CeilDiv((rest + cost) * limit.period(), uint64_t{limit.requests()});
  } else if (limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter) {
    more = CounterNeeds(limit, debt.owed, cost, due);
  } else {
    // A window pays its whole limit; the rest fits beside the last part of the debt, or not.
    more = (base::CeilDiv(base::uint128{debt.owed} + cost, limit.capacity()) - 1) *
           base::uint128{LongestPeriodOf(limit)};
  }
  constexpr auto kMost = static_cast<uint64_t>(algorithm::kNever.count()) / 4;
  decision.reset_after =
      (due - now) +
      base::Duration(static_cast<int64_t>(more > kMost ? kMost : static_cast<uint64_t>(more)));
  decision.retry_after = decision.reset_after;
  return decision;
}

}  // namespace headgate::limiter
