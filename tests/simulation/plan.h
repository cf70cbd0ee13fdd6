// The draws of one seed: the fleet, its limits and demand, and the faults. Each seed disables some
// faults altogether (swarm testing: Groce et al., ISSTA 2012), so that no fault hides the effects
// of another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/random.h"
#include "headgate/base/time.h"
#include "headgate/rule/rule_set.h"

namespace headgate::simulation {

inline bool IsCalendar(const algorithm::LimitSpec& spec) {
  return algorithm::IsCalendar(spec.align);
}

// A day and more: the requests for such a time are asked for in some seconds.
inline bool IsLong(const algorithm::LimitSpec& spec) {
  return IsCalendar(spec) || spec.period >= std::chrono::hours(1);
}

// The basis of the demand: the requests for a month are asked for in some seconds.
inline base::Duration PaceOf(const algorithm::LimitSpec& spec) {
  return IsLong(spec) ? base::Duration(std::chrono::seconds(8)) : spec.period;
}

struct KeyPlan {
  algorithm::LimitSpec spec;
  // The limit that replaces it, on each node a little earlier or later.
  std::optional<algorithm::LimitSpec> changed{};
  base::Duration changed_at{0};
  const algorithm::LimitSpec& last() const { return changed ? *changed : spec; }
  uint64_t cost_max = 1;
  uint64_t demand_percent = 100;       // of the rate, of all nodes together, while things go wrong
  uint64_t demand_percent_calm = 150;  // and afterwards
  bool bursts = false;                 // demand comes and goes
  // So often nobody asks while a lease lives, and all ask when it ends; also when the limit
  // changes.
  uint32_t stampedes = 0;
  uint64_t refund_percent = 0;  // of what is let through is undone
  bool change_in_stampede = false;
  rule::Sharing sharing = rule::Sharing::kLeased;
  // The policy of a node for a request if it cannot ask the store.
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kDeny;
};

struct Plan {
  uint64_t seed = 0;
  uint32_t instances = 1;
  uint32_t loops = 1;  // of each: every event loop is a node
  uint32_t nodes() const { return instances * loops; }
  bool even = false;    // in the calm all nodes are asked for as much
  bool steady = false;  // and each for the same number in each period, at even gaps
  std::vector<KeyPlan> keys;
  base::Duration ttl{0};
  base::Duration timeout{0};
  // A node's own, which may fire late, by far: the network's is `timeout`.
  base::Duration timer() const { return std::min(timeout, ttl / 16); }

  base::Duration delay_max{0};
  uint64_t lost_ppm = 0;
  uint64_t doubled_ppm = 0;
  uint64_t slow_ppm = 0;
  base::Duration slow_max{0};
  uint64_t drift_ppm_max = 0;
  // This many of each, at random times.
  uint32_t pauses = 0;
  uint32_t crashes = 0;
  uint32_t shutdowns = 0;  // in good order
  uint32_t resets = 0;
  uint32_t cuts = 0;  // of an instance from the store
  uint32_t failovers = 0;
  uint32_t partitions =
      0;  // a failover, but the server that was goes on answering some of the nodes
  uint32_t flushes = 0;
  uint32_t restarts_from_file = 0;  // of the store
  uint32_t restarts_empty = 0;
  uint32_t replicas_attached = 0;
  uint32_t slot_moves = 0;
  uint32_t sleeps = 0;  // of everything, for minutes or weeks
  uint32_t steps_forward = 0;
  uint32_t steps_back = 0;
  base::Duration replication_lag{0};
  bool sharp = false;  // requests at the last instants of leases

  uint64_t group_percent = 0;  // of the requests of a plan of several keys are for all of them
  base::Duration breaker_open_max{0};
  bool shuts_down_at_end = false;  // instead of becoming idle

  // Whether nodes are held to their ledgers; without, a planted bug has to show in what the fleet
  // lets through.
  bool ledger = true;

  // The store's clock at the beginning, and where a month or year ends by it.
  base::Instant start{0};
  base::Instant calendar_edge{0};
  // Everything goes wrong until `calm_from`; from `measured_from` to `measured_to` the fleet must
  // do its work; from then on nobody asks for anything, and by `end` everything has been returned.
  base::Duration calm_from{0};
  base::Duration measured_from{0};
  base::Duration measured_to{0};
  base::Duration end{0};
};

Plan Draw(uint64_t seed);
std::string ToString(const Plan& plan);

}  // namespace headgate::simulation
