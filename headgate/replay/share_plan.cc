#include "headgate/replay/share_plan.h"

#include <algorithm>
#include <utility>

namespace headgate::replay {

absl::StatusOr<SharePlanner> SharePlanner::Make(const algorithm::FairShareOptions& options,
                                                Anonymous anonymous) {
  auto pool = algorithm::FairSharePool::Make(options);
  if (!pool.ok()) return pool.status();
  return SharePlanner(options, anonymous, *std::move(pool));
}

void SharePlanner::Take(std::string_view client, base::Instant at, uint32_t weight) {
  if (plan_.requests == 0) plan_.first = plan_.last = at;
  if (at < plan_.last) ++plan_.late;
  plan_.last = std::max(plan_.last, at);

  const int64_t number = (plan_.last - plan_.first) / cycle_;
  if (number != number_) EndCycle();
  number_ = number;
  ++in_cycle_;
  ++plan_.requests;

  ClientPlan& plan = PlanOf(client, number);
  ++plan.requests;
  const bool allowed = client.empty() && anonymous_ == Anonymous::kRefused
                           ? false
                           : pool_.Decide({.client = client, .weight = weight}, plan_.last).allowed;
  if (allowed) return;
  ++plan_.refused;
  ++plan.refused;
  ++refused_in_cycle_;
}

ClientPlan& SharePlanner::PlanOf(std::string_view client, int64_t cycle) {
  auto found = clients_.find(client);
  if (found == clients_.end()) {
    if (clients_.size() == kPlannedClientsMax) return plan_.others;
    found = clients_.emplace(std::string(client), Client{}).first;
    found->second.plan.name = client;
  }
  Client& known = found->second;
  if (known.cycle != cycle) {
    known.cycle = cycle;
    known.in_cycle = 0;
  }
  known.plan.most_in_cycle = std::max(known.plan.most_in_cycle, ++known.in_cycle);
  return known.plan;
}

void SharePlanner::EndCycle() {
  if (in_cycle_ == 0) return;
  loads_.push_back(in_cycle_);
  plan_.most_in_cycle = std::max(plan_.most_in_cycle, in_cycle_);
  ++plan_.cycles;
  if (refused_in_cycle_ > 0) ++plan_.cycles_refusing;
  in_cycle_ = refused_in_cycle_ = 0;
}

SharePlan SharePlanner::Finish() {
  EndCycle();
  SharePlan plan = std::move(plan_);
  if (!loads_.empty()) {
    const auto place = static_cast<std::ptrdiff_t>((loads_.size() * 99 + 99) / 100 - 1);
    std::nth_element(loads_.begin(), loads_.begin() + place, loads_.end());
    plan.capacity_for_most = loads_[static_cast<size_t>(place)];
  }
  for (auto& [name, client] : clients_) plan.clients.push_back(std::move(client.plan));
  std::stable_sort(
      plan.clients.begin(), plan.clients.end(),
      [](const ClientPlan& a, const ClientPlan& b) { return a.requests > b.requests; });
  return plan;
}

}  // namespace headgate::replay
