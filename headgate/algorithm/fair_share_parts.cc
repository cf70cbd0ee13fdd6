// A pool that several instances share: each of them takes parts, spends them, and reports the
// demands of its clients.
#include <algorithm>
#include <iterator>

#include "headgate/algorithm/fair_share_pool.h"

namespace headgate::algorithm {

bool FairSharePool::AddDemand(const FairShareRequest& request, base::Instant now) {
  now = Advance(now);
  Client* client = Find(request.client);
  if (client == nullptr) client = Register(request, now);
  if (client == nullptr) return false;
  client->weight = std::clamp<uint32_t>(request.weight, 1, kFairWeightMax);
  if (request.cost > 0) HearFrom(*client, now);
  client->demand = FairSum(client->demand, request.cost);
  CountLate(*client, request.cost);
  return true;
}

void FairSharePool::AddLateDemand(std::span<const FairShareRequest> requests) {
  bool any = false;
  for (const FairShareRequest& request : requests) {
    Client* const client = Find(request.client);
    if (client == nullptr || request.cost == 0) continue;
    client->demand_last = FairSum(client->demand_last, request.cost);
    const uint64_t late = std::min<uint64_t>(request.cost, kFairCapacityMax) * kSteps;
    client->late += std::min(late, PartOf(*client) / 2) / kLateCycles;
    client->late = std::min(client->late, kFairCapacityMax * kSteps);
    client->idle = base::Duration(0);
    any = true;
  }
  if (any) Redivide();
}

void FairSharePool::ReclaimFor(std::string_view name, base::Instant now) {
  now = Advance(now);
  Client* const client = Find(name);
  if (client != nullptr && MayReclaim(*client, RoomOf(*client) + 1)) DoReclaim(*client, now);
}

uint64_t FairSharePool::TakePart(std::string_view name, uint64_t want) {
  Client* const client = Find(name);
  if (client == nullptr) return 0;
  const uint64_t taken = std::min(want, RoomOf(*client));
  Use(*client, taken);
  return taken;
}

void FairSharePool::ReturnPart(std::string_view name, uint64_t amount, uint64_t cycle) {
  Client* const client = Find(name);
  if (client == nullptr || cycle < full_since_ || cycle > cycle_.number) return;
  amount = std::min(amount, client->used);
  client->used -= amount;
  if (cycle == cycle_.number) {
    used_ -= std::min(amount, used_);
    pace_ = std::min(pace_ + static_cast<int64_t>(amount), pace_max_);
  }
  Keep(*client);
}

void FairSharePool::ChargePart(std::string_view name, uint64_t amount) {
  Client* const client = Find(name);
  if (client == nullptr) return;
  client->used = FairSum(client->used, amount);
  used_ = FairSum(used_, amount);
  Keep(*client);
}

void FairSharePool::TellDenied(std::string_view name, base::Instant now) {
  Client* const client = Find(name);
  if (client != nullptr) Tell(*client, {.allowed = false, .retry_after = WaitOf(1, now)}, now);
}

uint64_t FairSharePool::RoomFor(std::string_view name) const {
  const Client* const client = Find(name);
  return client == nullptr ? 0 : RoomOf(*client);
}

bool FairSharePool::ShiftTimes(base::Duration by) {
  // Each is in [0, kInstantMax], so the sums do not overflow.
  base::Instant* const times[] = {&seen_, &cycle_.start, &cycle_.end, &due_};
  const bool fits = std::all_of(std::begin(times), std::end(times), [&](const base::Instant* time) {
    return time->ns + by.count() >= 0 && time->ns + by.count() <= base::kInstantMax.ns;
  });
  if (!fits || due_.ns + by.count() < options_.cycle.count()) return false;
  for (base::Instant* time : times) *time += by;
  step_end_ = base::Instant{0};
  const auto shift = [by](base::Instant& time) {
    time.ns = std::clamp<int64_t>(time.ns + by.count(), 0, base::kInstantMax.ns);
  };
  for (Client& client : clients_) {
    shift(client.asked);
    shift(client.told_at);
    shift(client.told_until);
  }
  return true;
}

void FairSharePool::SetOptions(const FairShareOptions& options) {
  options_next_ = options;
  if (options_next_->minimum_cycle.count() == 0) options_next_->minimum_cycle = options.cycle / 10;
  capacity_next_ = options.capacity;
}

FairShareOptions FairSharePool::options_next() const {
  FairShareOptions next = options_next_.value_or(options_);
  next.capacity = capacity_next_;
  return next;
}

}  // namespace headgate::algorithm
