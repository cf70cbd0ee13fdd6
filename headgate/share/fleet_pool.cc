// The answers to requests. The rounds are in fleet_pool_rounds.cc.
#include "headgate/share/fleet_pool.h"

#include <algorithm>
#include <utility>

namespace headgate::share {

using algorithm::Cost;
using algorithm::FairSharePool;
using base::Duration;
using base::Instant;

namespace {

// When to retry after a denial for which the store was not asked.
constexpr Duration kRetryEarly = std::chrono::seconds(1);

uint64_t Sum(uint64_t sum, Cost cost) {
  return std::min(sum + std::min<Cost>(cost, algorithm::kFairCapacityMax),
                  algorithm::kFairCapacityMax);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FleetPool>> FleetPool::Make(const ShareOptions& options) {
  HEADGATE_RETURN_IF_ERROR(options.Validate());
  if (options.find_capacity)
    return absl::InvalidArgumentError("the capacity of a fleet is a number, it cannot be found");
  HEADGATE_ASSIGN_OR_RETURN(FairSharePool pool, FairSharePool::Make(options.pool));
  return std::unique_ptr<FleetPool>(new FleetPool(options, std::move(pool)));
}

FleetPool::FleetPool(const ShareOptions& options, FairSharePool pool)
    : options_(options),
      names_(options_),
      mode_(options.mode),
      in_flight_(options_.secret),
      state_{.pool = std::move(pool)} {}

PoolAnswer FleetPool::Admit(std::string_view client_id, Cost cost, Asking asking, Instant now) {
  ClientNames::Buffer buffer;
  const std::string_view name = names_.NameOf(client_id, buffer);
  bool needs_round = false;
  PoolAnswer verdict;
  {
    const std::lock_guard lock(mutex_);
    Advance(now);
    verdict = Judge(name, cost, asking, now, needs_round);
    if (verdict.admitted && cost > 0) {
      const bool takes = verdict.reason == Reason::kWithinShare && mode_ == Mode::kEnforce;
      verdict.number =
          in_flight_.Enter({.client = name, .taken = takes ? cost : 0, .cycle = SpentCycle()}, now);
    }
  }
  if (needs_round && on_need_) on_need_();
  return verdict;
}

PoolAnswer FleetPool::Judge(std::string_view name, Cost cost, Asking asking, Instant now,
                            bool& needs_round) {
  if (name.empty())
    return Settle(nullptr, cost, {.reason = Reason::kNoClient, .retry_after = algorithm::kNever});
  if (alone_) return JudgeAlone(name, cost, now);
  if (cost == 0) return Peek(name, now);
  Client* const client = EnsureClient(name);
  if (client == nullptr || (client->is_told && client->refused)) {
    return Settle(nullptr, cost,
                  {.reason = Reason::kTooManyClients, .retry_after = LeftOfCycle(now)});
  }
  if (asking.ticket == 0) client->demand = Sum(client->demand, cost);
  // The demand of this client has to be reported in a round.
  if (std::exchange(is_idle_, false)) needs_round = true;
  if (cost <= client->part) {
    client->part -= cost;
    client->admitted += cost;
    PoolAnswer verdict = Describe(*client, now);
    verdict.admitted = true;
    return Settle(client, cost, verdict);
  }
  PoolAnswer verdict = Describe(*client, now);
  verdict.retry_after = WaitOf(cost, now);
  verdict.reason = Reason::kShareUsed;
  if (cost > std::max(state_.pool.capacity(), state_.pool.options_next().capacity)) {
    verdict.reason = Reason::kNeverFits;
    verdict.retry_after = algorithm::kNever;
    return Settle(client, cost, verdict);
  }
  // If the pool may have more, the request waits for a round: for a new one, unless the round that
  // it waits for already has not ended.
  if (!IsUsedUp(*client, cost, now)) {
    const bool asks_anew = asking.ticket == 0 || rounds_ended_ >= asking.ticket;
    if (asks_anew) client->need = Sum(client->need, cost);
    needs_round = needs_round || asks_anew;
    if (asks_anew && asking.ticket != 0) asking.ticket = rounds_begun_ + 1;
    return Defer(*client, cost, asking, verdict);
  }
  client->unmet = Sum(client->unmet, cost);
  return Settle(client, cost, verdict);
}

PoolAnswer FleetPool::Defer(Client& client, Cost cost, Asking asking, PoolAnswer verdict) {
  if (mode_ == Mode::kPassthrough) {
    // The request passes now. The result of the round tells whether it would have been refused.
    client.owed = Sum(client.owed, cost);
    verdict.reason = Reason::kWithinShare;
    verdict.retry_after = Duration(0);
    verdict.admitted = true;
    return verdict;
  }
  if (!asking.is_last) {
    if (asking.ticket == 0) ++figures_.waited;
    verdict.ticket = asking.ticket != 0 ? asking.ticket : rounds_begun_ + 1;
    return verdict;
  }
  ++figures_.early_denials;
  verdict.retry_after = kRetryEarly;
  return Settle(&client, cost, verdict);
}

PoolAnswer FleetPool::JudgeAlone(std::string_view name, Cost cost, Instant now) {
  const uint64_t refused_clients = alone_->refused_clients();
  const algorithm::Decision decision =
      alone_->Decide({.client = name, .cost = cost, .weight = names_.WeightOf(name)}, now);
  PoolAnswer verdict{.admitted = decision.allowed,
                     .has_limit = true,
                     .limit = decision.limit,
                     .remaining = decision.remaining,
                     .retry_after = decision.retry_after,
                     .reset_after = decision.reset_after};
  if (alone_->refused_clients() != refused_clients) {
    verdict.reason = Reason::kTooManyClients;
    verdict.has_limit = false;
  } else if (!decision.allowed) {
    verdict.reason = decision.never_fits() ? Reason::kNeverFits : Reason::kShareUsed;
  }
  if (cost == 0) return verdict;
  ++figures_.alone;
  return Settle(EnsureClient(name), cost, verdict);
}

PoolAnswer FleetPool::Peek(std::string_view name, Instant now) const {
  const auto found = clients_.find(absl::string_view(name.data(), name.size()));
  PoolAnswer verdict;
  if (found != clients_.end()) verdict = Describe(found->second, now);
  // Only a round could tell how much remains, so at least one request may pass.
  if (found == clients_.end() || !found->second.is_told)
    verdict.remaining = std::max<uint64_t>(1, verdict.remaining);
  verdict.has_limit = true;
  verdict.admitted = true;
  return verdict;
}

PoolAnswer FleetPool::Describe(const Client& client, Instant now) const {
  const uint64_t remaining = client.part + (client.is_told ? client.room : 0);
  return {.has_limit = client.is_known,
          .limit = std::max(client.limit, remaining),
          .remaining = remaining,
          .reset_after = remaining > 0 ? LeftOfCycle(now) : WaitOf(1, now)};
}

PoolAnswer FleetPool::Settle(Client* client, Cost cost, PoolAnswer verdict) {
  if (cost == 0) return verdict;
  cost = std::min<Cost>(cost, algorithm::kFairCapacityMax);
  if (verdict.reason != Reason::kNoClient && verdict.reason != Reason::kTooManyClients) {
    const auto count = verdict.admitted ? &algorithm::FairShareCounts::allowed
                                        : &algorithm::FairShareCounts::rejected;
    counts_.*count += cost;
    if (client != nullptr) client->counts.*count += cost;
  }
  if (verdict.admitted) return verdict;
  ++CountOf(refusals_, verdict.reason);
  if (mode_ == Mode::kPassthrough) {
    ++counted_only_;
    verdict.admitted = verdict.counted_only = true;
    verdict.retry_after = Duration(0);
  }
  return verdict;
}

uint64_t FleetPool::SpentCycle() const {
  constexpr uint64_t kAlone = uint64_t{1} << 63;
  return alone_ ? alone_->cycle().number | kAlone : state_.pool.cycle().number;
}

void FleetPool::OnEnd(uint64_t number, bool was_sent, Instant now) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  const InFlight::Request request = in_flight_.Leave(number).request;
  if (was_sent || request.taken == 0 || request.cycle != SpentCycle()) return;
  if (alone_) return alone_->ReturnPart(request.client, request.taken, alone_->cycle().number);
  const auto found = clients_.find(absl::string_view(request.client.data(), request.client.size()));
  if (!is_current_ || found == clients_.end() || found->second.admitted < request.taken) return;
  found->second.admitted -= request.taken;
  found->second.part = Sum(found->second.part, request.taken);
}

FleetPool::Client* FleetPool::EnsureClient(std::string_view name) {
  const absl::string_view key(name.data(), name.size());
  if (const auto found = clients_.find(key); found != clients_.end()) return &found->second;
  // Clients that the pool has refused stay in the table until their cycle ends.
  if (clients_.size() >= size_t{2} * options_.pool.clients_max) return nullptr;
  return &clients_.emplace(key, Client{.weight = names_.WeightOf(name)}).first->second;
}

// Never 0, because a round has to come first.
Duration FleetPool::LeftOfCycle(Instant now) const {
  if (!is_current_) return std::chrono::milliseconds(100);
  return std::max<Duration>(state_.cycle_end - now, std::chrono::milliseconds(1));
}

Duration FleetPool::WaitOf(Cost cost, Instant now) const {
  const Duration left = LeftOfCycle(now);
  return cost > state_.pool.room() ? left : std::min(left, state_.pool.wait());
}

// Whether the last round has shown that the client can get no more. While the pool has room, this
// holds only for one step of the cycle, because the amounts kept for others are lent out as time
// passes.
bool FleetPool::IsUsedUp(const Client& client, Cost cost, Instant now) const {
  if (!client.is_told || client.room + client.part >= cost) return false;
  const Duration step = state_.pool.options().cycle / FairSharePool::kSteps;
  return cost > state_.pool.room() || now - client.told_at < step;
}

void FleetPool::SetMode(Mode mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
}

Mode FleetPool::mode() const {
  const std::lock_guard lock(mutex_);
  return mode_;
}

FleetFigures FleetPool::figures() const {
  const std::lock_guard lock(mutex_);
  FleetFigures figures = figures_;
  figures.is_alone = alone_.has_value();
  return figures;
}

uint64_t FleetPool::cycle() const {
  const std::lock_guard lock(mutex_);
  return is_current_ ? state_.pool.cycle().number : 0;
}

void FleetPool::TakeSnapshot(Instant now, PoolSnapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  const FairSharePool& pool = alone_ ? *alone_ : state_.pool;
  snapshot.mode = mode_;
  snapshot.capacity = pool.capacity();
  snapshot.cycle = pool.cycle();
  snapshot.cycle.ends = cycle_ends_;
  snapshot.clients_left = clients_left_;
  snapshot.clients_replaced = clients_replaced_;
  snapshot.counts = counts_;
  snapshot.refusals = refusals_;
  snapshot.counted_only = counted_only_;
  snapshot.upstream.reset();
  snapshot.clients.resize(pool.client_count());
  for (size_t i = 0; i < snapshot.clients.size(); ++i) {
    const algorithm::ClientView view = pool.client(i);
    snapshot.clients[i].name.assign(view.name);
    snapshot.clients[i].figures = view.figures;
    const auto found = clients_.find(absl::string_view(view.name.data(), view.name.size()));
    snapshot.clients[i].figures.counts =
        found == clients_.end() ? algorithm::FairShareCounts() : found->second.counts;
  }
  snapshot.others_count = 0;
  snapshot.others = {};
}

}  // namespace headgate::share
