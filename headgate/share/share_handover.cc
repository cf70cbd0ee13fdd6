// The state that a pool passes on at a restart.
#include <algorithm>
#include <utility>

#include "headgate/algorithm/fair_share_state.h"
#include "headgate/share/share_pool.h"

namespace headgate::share {

HandedPool SharePool::HandOver(base::Instant now) {
  const std::lock_guard lock(mutex_);
  FollowCapacity(now);
  HandedPool handed{.at = pool_.Advance(now)};
  algorithm::FairShareState::Append(pool_, handed.shares);
  if (controller_) handed.found = controller_->Found();
  return handed;
}

absl::Status SharePool::TakeOver(const HandedPool& handed, base::Instant now) {
  std::optional<algorithm::FairSharePool> taken;
  if (!handed.shares.empty()) {
    taken = algorithm::FairShareState::Parse(handed.shares);
    if (!taken || !taken->ShiftTimes(now - handed.at))
      return absl::InvalidArgumentError("the shares that were handed over are not those of a pool");
  }
  const std::lock_guard lock(mutex_);
  if (controller_ && handed.found) controller_->BeginWith(*handed.found, now);
  if (taken) TakeOverShares(*std::move(taken), now);
  return absl::OkStatus();
}

void SharePool::TakeOverShares(algorithm::FairSharePool taken, base::Instant now) {
  algorithm::FairShareOptions options = options_.pool;
  if (controller_) {
    const std::optional<uint64_t> found = controller_->PerCycle(options.cycle);
    // No client is refused because of its share before a capacity is found.
    if (!found) return;
    options.capacity = *found;
    options.is_paced = false;
    is_capacity_known_ = true;
  }
  if (taken.capacity() == algorithm::kFairCapacityMax) {
    taken.BeginAnew(options.capacity, now);  // the old process had not found one
  } else if (taken.options().cycle == options.cycle) {
    taken.SetCapacity(options.capacity, now);
  }
  taken.SetOptions(options);
  for (size_t i = 0; i < pool_.client_count(); ++i) {
    const algorithm::ClientView client = pool_.client(i);
    taken.AddDemand(
        {.client = client.name, .cost = client.figures.demand_now, .weight = client.figures.weight},
        now);
    taken.ChargePart(client.name, client.figures.used_now);
  }
  Add(earlier_, pool_.counts());
  pool_ = std::move(taken);
}

}  // namespace headgate::share
