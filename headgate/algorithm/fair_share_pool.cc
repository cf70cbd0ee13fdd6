#include "headgate/algorithm/fair_share_pool.h"

#include <algorithm>

namespace headgate::algorithm {
namespace {

// The amount that one request adds to a count, so that counts do not wrap within 2^32 requests of
// any cost.
Cost Bounded(Cost cost) { return std::min<Cost>(cost, kFairCapacityMax); }

// A client that was behind may send this many requests at once; then it has caught up. The turn
// of a client is at most kTurnLead requests ahead.
constexpr uint64_t kTurnBurst = 8;
constexpr uint64_t kTurnLead = 2 * kTurnBurst;
constexpr uint64_t kTurnUnit = 1024;

// If the pool has more clients, a new client does not cause a division at once.
constexpr size_t kDividedAtOnce = 256;

uint32_t ClampWeight(uint32_t weight) { return std::clamp<uint32_t>(weight, 1, kFairWeightMax); }

}  // namespace

absl::StatusOr<FairSharePool> FairSharePool::Make(const FairShareOptions& options) {
  HEADGATE_RETURN_IF_ERROR(options.Validate());
  FairShareOptions complete = options;
  if (complete.minimum_cycle.count() == 0) complete.minimum_cycle = complete.cycle / 10;
  return FairSharePool(complete);
}

Decision FairSharePool::Decide(const FairShareRequest& request, base::Instant now) {
  now = Advance(now);
  Client* client = Find(request.client);
  if (client == nullptr) {
    if (request.cost == 0) return PeekUnregistered(now);
    client = Register(request, now);
    if (client == nullptr) {
      refused_clients_ += Bounded(request.cost);
      return {.allowed = false, .retry_after = Left(now), .reset_after = Left(now)};
    }
  } else if (request.cost > 0) {
    client->weight = ClampWeight(request.weight);
  }

  const Cost cost = request.cost;
  if (cost > 0) HearFrom(*client, now);
  client->demand = FairSum(client->demand, cost);
  CountLate(*client, cost);
  if (cost > RoomOf(*client) && MayReclaim(*client, cost)) DoReclaim(*client, now);

  const uint64_t room = RoomOf(*client);
  Decision decision{.allowed = cost <= room,
                    .limit = std::max(client->capacity, client->used + room),
                    .remaining = room};
  if (!decision.allowed) {
    const bool fits = cost <= std::max(options_.capacity, capacity_next_);
    decision.retry_after = fits ? WaitOf(cost, now) : kNever;
  }
  uint64_t FairShareCounts::*count = &FairShareCounts::not_taken;
  if (request.takes) {
    count = decision.allowed ? &FairShareCounts::allowed : &FairShareCounts::rejected;
    if (decision.allowed) {
      Use(*client, cost);
      CountTurn(*client, cost);
      decision.remaining = RoomOf(*client);
    }
  }
  decision.reset_after = decision.remaining > 0 ? Left(now) : WaitOf(1, now);
  if (cost > 0 && request.takes) Tell(*client, decision, now);
  client->counts.*count += Bounded(cost);
  counts_.*count += Bounded(cost);
  return decision;
}

void FairSharePool::CountSentAnyway(std::string_view name, Cost cost) {
  counts_.sent_anyway += Bounded(cost);
  Client* client = Find(name);
  if (client == nullptr) return;
  client->used = FairSum(client->used, cost);
  Keep(*client);
  client->counts.sent_anyway += Bounded(cost);
  CountTurn(*client, cost);
}

bool FairSharePool::IsOnPace(std::string_view name, Cost cost, base::Instant now) {
  now = Advance(now);
  const Client* client = Find(name);
  if (client == nullptr || cost > RoomOf(*client)) return false;
  const uint64_t own = std::max(client->capacity, client->even);
  return client->used + cost <= PartOfCycle(own, now - (due_ - options_.cycle)) + 1;
}

bool FairSharePool::IsBehind(std::string_view name, Cost cost) const {
  const Client* client = Find(name);
  // A pool that was read from bytes (FairShareState) has no weights, and so no turns, before its
  // first division.
  if (client == nullptr || weights_ == 0 || cost > kTurnBurst) return false;
  return std::max(client->turn, turn_) + cost * TurnLength(*client) <=
         turn_ + kTurnBurst * TurnLength(*client);
}

// The progress of turn_ after which a client may have another request. It is a third longer than an
// even turn, so that no client counts as behind if all of them ask for too much.
uint64_t FairSharePool::TurnLength(const Client& client) const {
  return weights_ * kTurnUnit * 4 / (uint64_t{client.weight} * 3);
}

// The sums cannot overflow, because turn_ starts at 0 in each full cycle.
void FairSharePool::CountTurn(Client& client, Cost cost) {
  const uint64_t length = TurnLength(client);
  const uint64_t next = std::max(client.turn, turn_) + std::min<Cost>(cost, kTurnLead) * length;
  turn_ += Bounded(cost) * kTurnUnit;
  const uint64_t most = turn_ + kTurnLead * length;
  client.turn = cost < kTurnLead ? std::min(next, most) : most;
}

ClientView FairSharePool::client(size_t index) const {
  const Client& client = clients_[index];
  // Neither bound counts rounding as a loan: a client with an even share of 10/3 and a capacity of
  // 3 or 4 has borrowed nothing.
  const uint64_t own_least = std::min(client.capacity, client.even);
  const uint64_t own_most = std::max(client.capacity, client.even_up);
  return {.name = client.name,
          .figures = {.weight = client.weight,
                      .demand = client.demand_last,
                      .capacity = client.capacity,
                      .borrowed = own_most - client.even_up,
                      .lent = client.even - own_least,
                      .demand_now = client.demand,
                      .used_now = client.used,
                      .counts = client.counts}};
}

FairSharePool::Client* FairSharePool::Find(std::string_view name) {
  const auto found = client_index_.find(absl::string_view(name.data(), name.size()));
  return found == client_index_.end() ? nullptr : &clients_[found->second];
}

const FairSharePool::Client* FairSharePool::Find(std::string_view name) const {
  const auto found = client_index_.find(absl::string_view(name.data(), name.size()));
  return found == client_index_.end() ? nullptr : &clients_[found->second];
}

FairSharePool::Client* FairSharePool::Register(const FairShareRequest& request, base::Instant now) {
  Client joining{
      .name = std::string(request.client), .weight = ClampWeight(request.weight), .asked = now};
  if (clients_.size() >= options_.clients_max) return Replace(std::move(joining));
  const bool restart = options_.on_new_client == OnNewClient::kRestart && !clients_.empty() &&
                       now - cycle_.start >= options_.minimum_cycle;
  if (restart) EndFull(CycleEnd::kNewClient, now);
  clients_.push_back(std::move(joining));
  Client& client = clients_.back();
  client_index_.emplace(client.name, clients_.size() - 1);
  if (clients_.size() <= kDividedAtOnce) {
    Redivide();
  } else {
    JoinUndivided(client);
  }
  Expect(client);
  client.pace = client.pace_max;
  // A new name gets one request before others in the order of turns, so inventing names gains
  // little.
  client.turn = turn_ + (kTurnBurst - 1) * TurnLength(client);
  return &client;
}

// Gives the client its even share without dividing the pool, so that a flood of new names does not
// cause a division for each name. The next step divides.
void FairSharePool::JoinUndivided(Client& client) {
  FindWeights();
  client.even = options_.capacity * client.weight / weights_;
  client.even_up = client.even + 1;
  needs_division_ = true;
}

// Replaces the client that has been silent for longest, unless its last request is as recent as
// this one; then returns null. The new client takes over its capacity. Admitted requests stay
// counted.
FairSharePool::Client* FairSharePool::Replace(Client joining) {
  const auto silent = std::min_element(
      clients_.begin(), clients_.end(),
      [](const Client& left, const Client& right) { return left.asked < right.asked; });
  if (silent->asked >= joining.asked) return nullptr;
  const auto index = static_cast<size_t>(silent - clients_.begin());
  client_index_.erase(silent->name);
  client_index_.emplace(joining.name, index);
  joining.capacity = silent->capacity;
  joining.kept = silent->kept;
  *silent = std::move(joining);
  JoinUndivided(*silent);
  if (clients_.size() <= kDividedAtOnce) Redivide();
  Expect(*silent);
  Keep(*silent);
  silent->pace = silent->pace_max;
  silent->turn = turn_ + (kTurnBurst - 1) * TurnLength(*silent);
  ++clients_replaced_;
  return &*silent;
}

Decision FairSharePool::PeekUnregistered(base::Instant now) const {
  const uint64_t even = options_.capacity / (clients_.size() + 1);
  return {.limit = even, .remaining = std::min(even, Room()), .reset_after = Left(now)};
}

// Whether a part of the client's even share is lent out and the request is within that share.
// Shares are compared as whole numbers: a client that has 3 of 10/3 lacks nothing, so it cannot
// reclaim in every cycle.
bool FairSharePool::MayReclaim(const Client& client, Cost cost) const {
  return options_.reclaim == Reclaim::kAtOnce && client.capacity < client.even &&
         client.used <= client.even && cost <= client.even - client.used;
}

void FairSharePool::DoReclaim(Client& client, base::Instant now) {
  client.counts_at_least_even = true;
  const base::Instant end = std::max(now, cycle_.start + options_.minimum_cycle);
  cycle_.end = std::min(cycle_.end, end);
  Advance(now);
}

}  // namespace headgate::algorithm
