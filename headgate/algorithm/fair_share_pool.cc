#include "headgate/algorithm/fair_share_pool.h"

#include <algorithm>

#include <fmt/format.h>

namespace headgate::algorithm {
namespace {

constexpr base::Duration kCycleMax = base::Duration(int64_t{1} << 60);

uint64_t SaturatingSum(uint64_t demand, Cost cost) {
  return cost > kFairCapacityMax - demand ? kFairCapacityMax : demand + cost;
}

}  // namespace

absl::Status FairShareOptions::Validate() const {
  if (capacity < 1 || capacity > kFairCapacityMax) {
    return absl::InvalidArgumentError(
        fmt::format("a pool's capacity is from 1 to {}, not {}", kFairCapacityMax, capacity));
  }
  if (cycle.count() <= 0 || cycle > kCycleMax) {
    return absl::InvalidArgumentError("a pool's cycle must be longer than 0 and at most 36 years");
  }
  if (reservation.denominator < 1 || reservation.denominator > kFairRatioDenominatorMax ||
      reservation.numerator > reservation.denominator) {
    return absl::InvalidArgumentError(
        fmt::format("a reservation is from 0 to 1 in steps of 1/{}, not {}/{}",
                    kFairRatioDenominatorMax, reservation.numerator, reservation.denominator));
  }
  if (minimum_cycle.count() < 0 || minimum_cycle > cycle) {
    return absl::InvalidArgumentError("minimum_cycle must be no longer than the cycle");
  }
  if (clients_max < 1 || clients_max > kFairClientsMax) {
    return absl::InvalidArgumentError(
        fmt::format("a pool has from 1 to {} clients, not {}", kFairClientsMax, clients_max));
  }
  return absl::OkStatus();
}

absl::StatusOr<FairSharePool> FairSharePool::Make(const FairShareOptions& options) {
  HEADGATE_RETURN_IF_ERROR(options.Validate());
  FairShareOptions complete = options;
  if (complete.minimum_cycle.count() == 0) complete.minimum_cycle = complete.cycle / 10;
  return FairSharePool(complete);
}

Decision FairSharePool::Decide(const FairShareRequest& request, base::Instant now) {
  now = seen_ = std::max(now, seen_);
  Advance(now);
  const auto found =
      client_index_.find(absl::string_view(request.client.data(), request.client.size()));
  Client* client = found != client_index_.end() ? &clients_[found->second] : nullptr;
  if (client == nullptr) {
    if (request.cost == 0) return PeekUnregistered(now);
    client = Register(request, now);
    if (client == nullptr) {
      ++refused_clients_;
      return {.allowed = false, .retry_after = Left(now), .reset_after = Left(now)};
    }
  } else if (request.cost > 0) {
    client->weight = std::clamp<uint32_t>(request.weight, 1, kFairWeightMax);
  }

  client->demand = SaturatingSum(client->demand, request.cost);
  // After a division in the middle of a cycle, some clients may have used more than their new share
  // and others less.
  const uint64_t own = client->capacity - std::min(client->used, client->capacity);
  const uint64_t room = std::min(own, options_.capacity - used_);
  Decision decision{.allowed = request.cost <= room,
                    .limit = client->capacity,
                    .remaining = room,
                    .reset_after = Left(now)};
  if (decision.allowed) {
    client->used += request.cost;
    used_ += request.cost;
    decision.remaining -= request.cost;
  } else {
    decision.retry_after = request.cost > options_.capacity ? kNever : Left(now);
  }
  return decision;
}

void FairSharePool::Advance(base::Instant now) {
  if (clients_.empty()) {
    cycle_start_ = now;
    return;
  }
  const base::Duration passed = now - cycle_start_;
  if (passed < options_.cycle) return;
  const auto cycles = passed / options_.cycle;
  // If more than one cycle has passed, no client asked for anything in the last one.
  for (Client& client : clients_) client.demand_last = cycles == 1 ? client.demand : 0;
  BeginCycle(cycle_start_ + cycles * options_.cycle);
  Redivide();
}

void FairSharePool::BeginCycle(base::Instant start) {
  cycle_start_ = start;
  used_ = 0;
  for (Client& client : clients_) client.used = client.demand = 0;
}

void FairSharePool::Redivide() {
  std::vector<ClientDemand> demands;
  demands.reserve(clients_.size());
  for (const Client& client : clients_)
    demands.push_back({client.name, client.demand_last, client.weight});
  const std::vector<uint64_t> capacities = Divide(options_.capacity, options_.reservation, demands);
  for (size_t i = 0; i < clients_.size(); ++i) clients_[i].capacity = capacities[i];
}

FairSharePool::Client* FairSharePool::Register(const FairShareRequest& request, base::Instant now) {
  if (clients_.size() >= options_.clients_max) return nullptr;
  const bool restart = options_.on_new_client == OnNewClient::kRestart && !clients_.empty() &&
                       now - cycle_start_ >= options_.minimum_cycle;
  if (restart) {
    for (Client& client : clients_) client.demand_last = client.demand;
    BeginCycle(now);
  }
  clients_.push_back({.name = std::string(request.client),
                      .weight = std::clamp<uint32_t>(request.weight, 1, kFairWeightMax)});
  client_index_.emplace(clients_.back().name, clients_.size() - 1);
  Redivide();
  return &clients_.back();
}

Decision FairSharePool::PeekUnregistered(base::Instant now) const {
  const uint64_t even = options_.capacity / (clients_.size() + 1);
  return {.limit = even,
          .remaining = std::min(even, options_.capacity - used_),
          .reset_after = Left(now)};
}

}  // namespace headgate::algorithm
