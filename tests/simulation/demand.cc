// The requests that clients send to each node.
#include <algorithm>

#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using namespace std::chrono_literals;

void World::BeginDemand() {
  weights_.resize(keys_.size());
  weights_calm_.resize(keys_.size());
  for (Demand& demand : demands_) {
    demand.on.resize(keys_.size(), true);
    demand.leased_at.resize(keys_.size());
    for (size_t key = 0; key < keys_.size(); ++key) {
      demand.weight.push_back(random_.Below(4));
      weights_[key] += demand.weight[key];
      weights_calm_[key] += plan_.even ? 1 : demand.weight[key] + 1;
    }
  }
  for (uint32_t i = 0; i < plan_.nodes(); ++i) {
    for (size_t key = 0; key < keys_.size(); ++key) {
      NextRequest(i, key);
      if (plan_.keys[key].bursts) NextBurst(i, key);
    }
  }
}

// The node's part of the demand is this weight divided by the sum of all weights.
uint64_t World::WeightOf(uint32_t node, size_t key) const {
  if (!calm()) return demands_[node].weight[key];
  return plan_.even ? 1 : demands_[node].weight[key] + 1;
}

void World::NextBurst(uint32_t index, size_t key) {
  Schedule(now_ + 100ms + Duration(static_cast<int64_t>(random_.Below(1'500'000'000))),
           [this, index, key] {
             std::vector<bool>& on = demands_[index].on;
             on[key] = calm() || !on[key];
             if (!calm()) NextBurst(index, key);
           });
}

void World::NextRequest(uint32_t index, size_t key) {
  const KeyPlan& plan = plan_.keys[key];
  const algorithm::LimitSpec& spec = MachineOf(index).switched[key] ? *plan.changed : plan.spec;
  const uint64_t weights = calm() ? weights_calm_[key] : weights_[key];
  const uint64_t weight = WeightOf(index, key);
  const uint64_t percent = calm() ? plan.demand_percent_calm : plan.demand_percent;
  if (weight == 0 || !demands_[index].on[key]) {
    return Schedule(now_ + 50ms, [this, index, key] { NextRequest(index, key); });
  }
  // The mean cost is half of the largest. A limit of 0 requests gets the demand of the limit that
  // it replaces or that replaces it.
  const uint64_t requests =
      spec.requests != 0 ? spec.requests : std::max(plan.spec.requests, plan.last().requests);
  const uint64_t per_period = requests * percent * weight;
  const uint64_t gap = static_cast<uint64_t>(PaceOf(spec).count()) * 100 * weights *
                       (plan.cost_max + 1) / 2 / per_period;
  Duration until_next(static_cast<int64_t>(random_.Below(2 * gap + 1)));
  if (calm() && plan_.steady) until_next = UntilNextBeat(index, PaceOf(spec), Duration(gap));
  Schedule(now_ + until_next, [this, index, key] {
    if (now_ >= plan_.measured_to) return;
    RequestNow(index, key);
    NextRequest(index, key);
  });
}

// The same moments in each period, but different moments for each node, so that the same node is
// first in every window.
Duration World::UntilNextBeat(uint32_t index, Duration period, Duration gap) const {
  const Duration beat = period / std::max<int64_t>(1, (period + gap / 2) / gap);
  const Duration offset(static_cast<int64_t>(base::Random(plan_.seed * 1000 + index).Next() %
                                             static_cast<uint64_t>(beat.count())));
  const Duration since = (now_ - offset) % period;
  return beat - (since + period) % period % beat;
}

void World::RequestNow(uint32_t index, size_t key) {
  const uint64_t cost = 1 + random_.Below(plan_.keys[key].cost_max);
  // Most requests are undone because another limit of their group denies.
  const bool gated =
      !calm() && random_.Below(100) < plan_.keys[key].refund_percent && random_.Below(3) > 0;
  const bool grouped =
      !calm() && plan_.group_percent > 0 && random_.Below(100) < plan_.group_percent;
  if (now_ < keys_[key].quiet_until) return;
  OnNode(index, now_, [this, key, cost, gated, grouped](Node& node) {
    const BootTime now = BootAt(MachineOf(node.index()), now_);
    if (grouped && !IsAnyQuiet()) return node.OnGroup(cost, now);
    if (gated) return node.OnGatedRequest(key, cost, now);
    Request(node, key, cost);
  });
}

bool World::IsAnyQuiet() const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [this](const Key& key) { return now_ < key.quiet_until; });
}

void World::Request(Node& node, size_t key, uint64_t cost) {
  const bool changed = MachineOf(node.index()).switched[key];
  if ((changed ? keys_[key].changed : keys_[key].limit)->limit.denies_all()) {
    coverage_.Mark("a limit of 0 requests was asked for");
  }
  if (keys_[key].exact && keys_[key].exact->Ask(cost, server_.Wall(now_)))
    MachineOf(node.index()).admitted_exactly[key] += cost;
  node.OnRequest(key, cost, BootAt(MachineOf(node.index()), now_));
}

}  // namespace headgate::simulation
