// How the cycles of a pool end and begin. The decisions within a cycle are in fair_share_pool.cc.
#include <algorithm>
#include <utility>

#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {

using base::Duration;
using base::Instant;

Instant FairSharePool::Advance(Instant now) {
  now = seen_ = std::max(now, seen_);
  if (clients_.empty()) {
    BeginFull();
    cycle_.start = now;
    cycle_.end = due_ = now + options_.cycle;
    step_ = 0;
    kept_ = 0;
    step_end_ = Instant{0};
    FindPace();
    pace_ = pace_max_;
    return now;
  }
  if (now >= cycle_.end && cycle_.end < due_) EndEarly();
  if (now < due_) {
    FollowTime(now);
    return now;
  }
  EndFull(CycleEnd::kDue, due_);
  if (const int64_t more = (now - cycle_.start) / options_.cycle; more > 0) SkipCycles(more);
  // All clients may have left; then the next cycle begins at `now`.
  if (clients_.empty()) return Advance(now);
  FollowTime(now);
  Redivide();
  return now;
}

void FairSharePool::SetCapacity(uint64_t capacity, Instant now) {
  now = Advance(now);
  capacity = std::clamp<uint64_t>(capacity, 1, kFairCapacityMax);
  const uint64_t before = std::exchange(capacity_next_, capacity);
  if (capacity == before) return;
  const uint64_t difference = capacity > before ? capacity - before : before - capacity;
  const uint64_t change = PartOfCycle(difference, due_ - now);
  if (capacity > before) {
    options_.capacity = std::min(options_.capacity + change, kFairCapacityMax);
    budget_ += change;
  } else {
    options_.capacity -= std::min(change, options_.capacity - 1);
    budget_ -= std::min(change, budget_);
  }
  budget_ = std::min(budget_, options_.capacity);
  clients_.empty() ? static_cast<void>(Advance(now)) : Redivide();
}

void FairSharePool::BeginAnew(uint64_t capacity, Instant now) {
  now = Advance(now);
  capacity_next_ = std::clamp<uint64_t>(capacity, 1, kFairCapacityMax);
  if (clients_.empty()) {
    Advance(now);
    return;
  }
  // Demands are scaled up at most tenfold, because a shorter time says too little.
  const Duration elapsed = std::max(now - (due_ - options_.cycle), options_.cycle / 10);
  for (Client& client : clients_) {
    const auto scaled =
        base::WideMul(client.demand, static_cast<uint64_t>(options_.cycle.count())) /
        std::max<uint64_t>(1, static_cast<uint64_t>(elapsed.count()));
    client.demand =
        std::max(client.demand_last,
                 static_cast<uint64_t>(std::min<base::uint128>(scaled, kFairCapacityMax)));
  }
  EndFull(CycleEnd::kCapacity, now);
  Redivide();
}

// The demands of a cycle that is cut short for a new client are not scaled to a full cycle: the
// demand for the rest of the cycle would be a guess.
void FairSharePool::EndFull(CycleEnd reason, Instant end) {
  CountIdle(end - (due_ - options_.cycle));
  Refill(kSteps - step_);
  step_ = 0;
  step_end_ = Instant{0};
  for (Client& client : clients_) {
    EndLate(client);
    client.credit = client.credit_next;
    client.demand_last = client.demand;
    client.counts_at_least_even = false;
    client.demand = client.used = 0;
    client.turn -= std::min(client.turn, turn_);
  }
  turn_ = 0;
  RemoveLeavers();
  CountEnd(reason, end, 1);
  full_before_ = std::exchange(full_since_, cycle_.number);
  BeginFull();
  cycle_.end = due_ = end + options_.cycle;
}

void FairSharePool::BeginFull() {
  if (options_next_) options_ = *std::exchange(options_next_, std::nullopt);
  options_.capacity = capacity_next_;
  BeginBudget(options_.capacity);
}

// The demand so far in a cycle that ends early is too small for a steady client: it would look
// idle, its share would be lent out, and it would reclaim that share in turn. So each client counts
// with its demand of the last full cycle, or of this cycle if that is larger, but at most with its
// even share. If the whole demand of a borrower counted, borrowers could take turns in using the
// same surplus.
void FairSharePool::EndEarly() {
  CountEnd(CycleEnd::kReclaim, cycle_.end, 1);
  cycle_.end = due_;
  FindEvenShares();
  for (Client& client : clients_) {
    if (client.demand >= client.even_up) {
      client.counts_at_least_even = true;
    } else {
      client.demand_last = std::max(client.demand_last, client.demand);
    }
  }
  std::vector<uint64_t> before;
  before.reserve(clients_.size());
  for (const Client& client : clients_) before.push_back(client.capacity);
  Redivide();
  // A client whose capacity has grown may use the difference, even if other clients have used it
  // already.
  uint64_t room = Room();
  for (size_t i = 0; i < clients_.size(); ++i) {
    const Client& client = clients_[i];
    const uint64_t had = std::max(before[i], client.used);
    room += client.capacity - std::min(client.capacity, had);
  }
  BeginBudget(std::min(room, options_.capacity));
}

void FairSharePool::BeginBudget(uint64_t budget) {
  budget_ = budget;
  used_ = 0;
}

void FairSharePool::SkipCycles(int64_t count) {
  for (Client& client : clients_) client.demand_last = 0;
  pace_ = pace_max_;
  step_end_ = Instant{0};
  CountIdle(count * options_.cycle);
  RemoveLeavers();
  CountEnd(CycleEnd::kDue, cycle_.start + count * options_.cycle, static_cast<uint64_t>(count));
  full_since_ = cycle_.number;
  full_before_ = full_since_ - 1;
  cycle_.last_length = options_.cycle;
  cycle_.end = due_ = cycle_.start + options_.cycle;
}

void FairSharePool::CountEnd(CycleEnd reason, Instant end, uint64_t count) {
  cycle_.number += count;
  cycle_.last_length = end - cycle_.start;
  cycle_.last_end = reason;
  cycle_.ends[static_cast<size_t>(reason)] += count;
  cycle_.start = end;
}

uint64_t FairSharePool::PartOfCycle(uint64_t amount, Duration time) const {
  return static_cast<uint64_t>(base::WideMul(amount, static_cast<uint64_t>(time.count())) /
                               static_cast<uint64_t>(options_.cycle.count()));
}

void FairSharePool::CountIdle(Duration length) {
  for (Client& client : clients_) {
    const bool asked = client.demand > 0;
    client.idle = asked ? Duration(0) : std::min(client.idle, base::kDurationMax - length) + length;
  }
}

void FairSharePool::RemoveLeavers() {
  if (options_.leave_after_cycles == 0) return;
  // A quotient, because the product may overflow.
  const auto leaves = [&](const Client& client) {
    return client.idle / options_.cycle >= options_.leave_after_cycles;
  };
  const size_t before = clients_.size();
  std::erase_if(clients_, leaves);
  if (clients_.size() == before) return;
  clients_left_ += before - clients_.size();
  client_index_.clear();
  for (size_t i = 0; i < clients_.size(); ++i) client_index_.emplace(clients_[i].name, i);
}

void FairSharePool::FindWeights() {
  weights_ = 0;
  for (const Client& client : clients_) weights_ += client.weight;
}

void FairSharePool::FindEvenShares() {
  FindWeights();
  for (Client& client : clients_) {
    const uint64_t weighted = options_.capacity * client.weight;
    client.even = weighted / weights_;
    client.even_up = (weighted + weights_ - 1) / weights_;
  }
}

void FairSharePool::Redivide() {
  needs_division_ = false;
  FindEvenShares();
  std::vector<ClientDemand> demands;
  demands.reserve(clients_.size());
  for (const Client& client : clients_) {
    demands.push_back({.name = client.name, .weight = client.weight, .credit = client.credit});
    if (!client.counts_at_least_even || client.demand_last >= client.even_up)
      demands.back().demand = client.demand_last;
  }
  std::vector<FairCredit> credits;
  const std::vector<uint64_t> capacities =
      Divide(options_.capacity, options_.reservation, demands, options_.lending, &credits);
  for (size_t i = 0; i < clients_.size(); ++i) {
    clients_[i].capacity = capacities[i];
    clients_[i].credit_next = credits[i];
  }
  ExpectAll();
  pace_ = std::min(pace_, pace_max_);
}

}  // namespace headgate::algorithm
