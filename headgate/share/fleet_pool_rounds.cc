// The rounds of an instance: its reports and its parts; and the pool that it has without the store.
#include <algorithm>
#include <utility>

#include "headgate/base/wide.h"
#include "headgate/share/fleet_pool.h"

namespace headgate::share {

using algorithm::FairSharePool;
using base::Duration;
using base::Instant;

namespace {

// A part covers the requests that are expected in this time, which is about two rounds.
constexpr Duration kHorizon = std::chrono::milliseconds(100);
constexpr uint64_t kExpectedUnit = 256;

uint64_t Minus(uint64_t whole, uint64_t part) { return whole - std::min(whole, part); }

}  // namespace

void FleetPool::Advance(Instant now) {
  if (alone_) alone_->Advance(now);
  if (!is_current_ || now < state_.cycle_end) return;
  is_current_ = false;
  EndParts();
  late_cycle_ = state_.pool.cycle().number;
  for (auto& [name, client] : clients_) {
    // The late demand of the cycle before is no longer useful.
    client.late = std::exchange(client.demand, 0);
    client.unmet = client.returned = 0;
  }
}

void FleetPool::EndParts() {
  for (auto& [name, client] : clients_) {
    figures_.expired += std::exchange(client.part, 0);
    client.admitted = 0;
    client.room = 0;
    client.is_told = false;
  }
}

FleetPool::Plan FleetPool::PlanRound(Instant now) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  Plan plan;
  if (is_current_) plan.cycle_end = state_.cycle_end;
  if (alone_) plan.urgency = Urgency::kPaced;
  for (const auto& [name, client] : clients_) {
    if (alone_) break;
    if (client.need > 0 || client.late > 0) {
      plan.urgency = Urgency::kAtOnce;
      break;
    }
    if (client.demand + client.unmet + client.charge + client.returned + client.part > 0)
      plan.urgency = Urgency::kPaced;
  }
  is_idle_ = plan.urgency == Urgency::kNone;
  // A round without requests reads the shares of the new cycle, for metrics.
  const bool looks = has_state_ && !is_current_ && state_.pool.client_count() > 0;
  if (is_idle_ && looks) plan.urgency = Urgency::kPaced;
  if (is_current_ && state_.pool.client_count() == 0) plan.cycle_end.reset();
  return plan;
}

FleetReport FleetPool::BeginRound(Instant now) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  Learn(now);
  FleetReport report{.round = ++rounds_begun_,
                     .generation = state_.generation,
                     .late_cycle = late_cycle_,
                     .in_cycle = is_current_,
                     .was_alone = alone_.has_value(),
                     .clients = {}};
  if (alone_) {
    ReportAlone(report);
    return report;
  }
  for (auto& [name, client] : clients_) {
    ClientReport entry = ReportOf(name, client);
    const uint64_t any = entry.demand + entry.late + entry.need + entry.unmet + entry.ahead +
                         entry.charge + entry.returned;
    if (any == 0) continue;
    client.demand = client.late = client.need = client.unmet = client.charge = 0;
    if (entry.returned > 0 && client.returned == 0) client.part -= entry.returned;
    client.returned = 0;
    entry.owed = std::exchange(client.owed, 0);
    report.clients.push_back(std::move(entry));
  }
  return report;
}

// An exponential average over kHorizon.
void FleetPool::Learn(Instant now) {
  const Duration passed = std::max(now - last_round_, Duration(1));
  last_round_ = std::max(now, last_round_);
  const Duration within = std::min(passed, kHorizon);
  const auto part = [](uint64_t amount, Duration of, Duration whole) {
    return static_cast<uint64_t>(base::WideMul(amount, static_cast<uint64_t>(of.count())) /
                                 static_cast<uint64_t>(whole.count()));
  };
  for (auto& [name, client] : clients_) {
    client.expected -= part(client.expected, within, kHorizon);
    client.expected += part(client.demand * kExpectedUnit, within, passed);
  }
}

ClientReport FleetPool::ReportOf(const std::string& name, Client& client) const {
  ClientReport entry{.name = name,
                     .weight = client.weight,
                     .demand = client.demand,
                     .late = client.late,
                     .need = client.need,
                     .unmet = client.unmet,
                     .charge = client.charge};
  const uint64_t expected = client.expected / kExpectedUnit;
  const uint64_t held = client.part;
  entry.ahead = Minus(expected, held);
  if (client.returned > 0) {
    entry.returned = client.returned;
    entry.returned_cycle = client.returned_cycle;
  } else if (is_current_ && client.need == 0 && held > 2 * expected) {
    entry.returned = held - expected;
    entry.returned_cycle = state_.pool.cycle().number;
  }
  return entry;
}

void FleetPool::AbandonRound(const FleetReport& report) {
  const std::lock_guard lock(mutex_);
  for (const ClientReport& entry : report.clients) {
    const auto found = clients_.find(entry.name);
    if (found == clients_.end()) continue;
    Client& client = found->second;
    if (report.was_alone) {
      client.returned = entry.returned;
      client.returned_cycle = entry.returned_cycle;
      continue;
    }
    client.charge += entry.charge;
    if (alone_) {
      PayOwed(client, entry.owed);
      continue;
    }
    client.need += entry.need;
    client.owed += entry.owed;
    const bool has_ended = report.in_cycle && !is_current_;
    if (has_ended) {
      client.late += entry.demand;
    } else {
      client.demand += entry.demand;
      client.late += entry.late;
      client.unmet += entry.unmet;
    }
    if (entry.returned == 0) continue;
    if (is_current_ && entry.returned_cycle == state_.pool.cycle().number) {
      client.part += entry.returned;
    } else {
      client.returned = entry.returned;
      client.returned_cycle = entry.returned_cycle;
    }
  }
}

void FleetPool::EndRound(const FleetReport& report, const std::vector<ClientGrant>& grants,
                         FleetState state, Instant now) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  const algorithm::CycleView& known = state_.pool.cycle();
  const bool is_other_pool = !has_state_ || state.generation != state_.generation;
  if (is_current_ && (is_other_pool || state.pool.cycle().number != known.number)) {
    // The cycle has ended early. Its parts can still be given back.
    for (auto& [name, client] : clients_) {
      if (client.part == 0 || is_other_pool) continue;
      client.returned = client.part;
      client.returned_cycle = known.number;
    }
    EndParts();
  }
  CountCycles(state.pool, is_other_pool);
  state_ = std::move(state);
  has_state_ = true;
  is_current_ = now < state_.cycle_end;
  if (is_current_) rounds_ended_ = report.round;
  if (alone_) EndAlone(report);
  for (size_t i = 0; i < grants.size(); ++i) {
    const auto found = clients_.find(report.clients[i].name);
    if (found == clients_.end()) continue;
    Client& client = found->second;
    if (is_current_) {
      client.is_told = true;
      client.told_at = now;
      client.refused = grants[i].refused;
      client.room = grants[i].room;
      client.part += grants[i].part;
      PayOwed(client, report.clients[i].owed);
    } else {
      // The round was written after the end of its cycle, so the next round asks again.
      figures_.expired += grants[i].part;
      client.need += report.clients[i].need;
      client.owed += report.clients[i].owed;
    }
  }
  FollowPool();
}

// Settles requests that have passed already: the part that was granted for them is spent, and the
// others count as refused.
void FleetPool::PayOwed(Client& client, uint64_t owed) {
  const uint64_t paid = std::min(owed, client.part);
  const uint64_t refused = owed - paid;
  client.part -= paid;
  client.admitted += paid;
  client.counts.allowed += paid;
  client.counts.rejected += refused;
  counts_.allowed += paid;
  counts_.rejected += refused;
  refusals_.share_used += refused;
  counted_only_ += refused;
}

// Counts here, because the counts of the pool itself may decrease: the store can lose the pool, or
// return an older one.
void FleetPool::CountCycles(const FairSharePool& pool, bool is_other_pool) {
  clients_left_ += pool.clients_left();
  clients_replaced_ += pool.clients_replaced();
  if (!has_state_) return;
  for (size_t i = 0; i < cycle_ends_.size(); ++i) {
    const uint64_t known = is_other_pool ? 0 : state_.pool.cycle().ends[i];
    cycle_ends_[i] += Minus(pool.cycle().ends[i], known);
  }
}

// Clients that have left the pool are forgotten here too; the others learn their capacity.
void FleetPool::FollowPool() {
  for (auto& [name, client] : clients_) client.is_known = false;
  for (size_t i = 0; i < state_.pool.client_count(); ++i) {
    const algorithm::ClientView view = state_.pool.client(i);
    const auto found = clients_.find(absl::string_view(view.name.data(), view.name.size()));
    if (found == clients_.end()) continue;
    found->second.is_known = true;
    found->second.limit = view.figures.capacity;
  }
  absl::erase_if(clients_, [](const auto& entry) {
    const Client& client = entry.second;
    const bool is_refused = client.is_told && client.refused;
    return !client.is_known && !is_refused &&
           client.part + client.demand + client.need + client.late + client.charge + client.owed +
                   client.returned ==
               0;
  });
}

// ---- Without the store

void FleetPool::GoAlone(uint32_t instances, Instant now) {
  const std::lock_guard lock(mutex_);
  Advance(now);
  if (alone_) return;
  algorithm::FairShareOptions options = state_.pool.options_next();
  options.capacity = std::max<uint64_t>(1, options.capacity / std::max<uint32_t>(1, instances));
  auto pool = FairSharePool::Make(options);
  if (!pool.ok()) return;  // the settings of a pool are valid
  alone_ = *std::move(pool);
  for (auto& [name, client] : clients_) {
    client.known = client.admitted;
    if (client.admitted == 0) continue;
    (void)alone_->AddDemand({.client = name, .cost = client.admitted, .weight = client.weight},
                            now);
    alone_->ChargePart(name, client.admitted);
  }
  for (auto& [name, client] : clients_) {
    if (client.part > 0 && is_current_) {
      client.returned = client.part;
      client.returned_cycle = state_.pool.cycle().number;
    }
    // Requests that wait are decided by this pool from now on.
    client.demand = client.late = client.need = client.unmet = 0;
    PayOwed(client, std::exchange(client.owed, 0));
  }
  is_current_ = false;
  EndParts();
}

bool FleetPool::is_alone() const {
  const std::lock_guard lock(mutex_);
  return alone_.has_value();
}

// Reports the requests that this instance's own pool has admitted in its running cycle, so that the
// shared pool can charge them.
void FleetPool::ReportAlone(FleetReport& report) {
  const bool is_first = alone_->full_since() == 1;
  for (size_t i = 0; i < alone_->client_count(); ++i) {
    const algorithm::ClientView view = alone_->client(i);
    ClientReport entry{.name = std::string(view.name),
                       .weight = view.figures.weight,
                       .demand = view.figures.demand_now,
                       .charge = view.figures.used_now};
    if (const auto found = clients_.find(entry.name); found != clients_.end()) {
      Client& client = found->second;
      if (is_first) {
        entry.demand = Minus(entry.demand, client.known);
        entry.charge = Minus(entry.charge, client.known);
      }
      entry.returned = std::exchange(client.returned, 0);
      entry.returned_cycle = client.returned_cycle;
    }
    report.clients.push_back(std::move(entry));
  }
}

// Requests that were admitted after the report are charged by the next round.
void FleetPool::EndAlone(const FleetReport& report) {
  FleetReport last;
  ReportAlone(last);
  alone_.reset();
  absl::flat_hash_map<std::string_view, const ClientReport*> reported;
  for (const ClientReport& entry : report.clients) {
    if (report.was_alone) reported.emplace(entry.name, &entry);
  }
  for (const ClientReport& entry : last.clients) {
    Client* const client = EnsureClient(entry.name);
    if (client == nullptr) continue;
    client->demand += entry.demand;
    client->charge += entry.charge;
    client->known = 0;
    const auto before = reported.find(entry.name);
    if (before == reported.end()) continue;
    client->demand = Minus(client->demand, before->second->demand);
    client->charge = Minus(client->charge, before->second->charge);
  }
}

}  // namespace headgate::share
