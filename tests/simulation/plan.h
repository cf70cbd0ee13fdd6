// The random choices of one seed: the fleet, its limits and demand, and the faults. Each seed
// disables some faults completely (swarm testing: Groce et al., ISSTA 2012), so no fault hides the
// effects of another.
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

// A period of a day or more: the demand of a whole period comes within some seconds.
inline bool IsLong(const algorithm::LimitSpec& spec) {
  return IsCalendar(spec) || spec.period >= std::chrono::hours(1);
}

// The time base of the demand: the requests of a month come within some seconds.
inline base::Duration PaceOf(const algorithm::LimitSpec& spec) {
  return IsLong(spec) ? base::Duration(std::chrono::seconds(8)) : spec.period;
}

struct KeyPlan {
  algorithm::LimitSpec spec;
  // The limit that replaces `spec`, on each node at a slightly different time.
  std::optional<algorithm::LimitSpec> changed{};
  base::Duration changed_at{0};
  const algorithm::LimitSpec& last() const { return changed ? *changed : spec; }
  uint64_t cost_max = 1;
  uint64_t demand_percent = 100;       // of the rate, all nodes together, during faults
  uint64_t demand_percent_calm = 150;  // and in the calm
  bool bursts = false;                 // demand stops at times
  // The number of stampedes: nobody asks while a lease lives, and all ask when it ends. One more
  // may happen when the limit changes.
  uint32_t stampedes = 0;
  uint64_t refund_percent = 0;  // of the admitted requests are undone
  bool change_in_stampede = false;
  rule::Sharing sharing = rule::Sharing::kLeased;
  // The policy of a node for a request while the store is unreachable.
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kDeny;
};

struct Plan {
  uint64_t seed = 0;
  uint32_t instances = 1;
  uint32_t loops = 1;  // event loops per instance; each is a node
  uint32_t nodes() const { return instances * loops; }
  bool even = false;    // in the calm, all nodes have equal demand
  bool steady = false;  // and each has the same number of requests in each period, at even gaps
  std::vector<KeyPlan> keys;
  base::Duration ttl{0};
  // The terms of tiny leases. Shorter and larger than in production, so that they end within a run
  // and occur with the limits that are drawn.
  base::Duration tiny_ttl{0};
  uint64_t tiny_share = 64;
  base::Duration timeout{0};
  // A node's own timeout, whose timer may fire much too late; the network's is `timeout`.
  base::Duration timer() const { return std::min(timeout, ttl / 16); }

  base::Duration delay_max{0};
  uint64_t lost_ppm = 0;
  uint64_t doubled_ppm = 0;
  uint64_t slow_ppm = 0;
  base::Duration slow_max{0};
  uint64_t drift_ppm_max = 0;
  // The number of each fault, at random times.
  uint32_t pauses = 0;
  uint32_t crashes = 0;
  uint32_t shutdowns = 0;  // orderly
  uint32_t resets = 0;
  uint32_t cuts = 0;  // between an instance and the store
  uint32_t failovers = 0;
  uint32_t partitions = 0;  // a failover after which the old server continues to answer some nodes
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

  uint64_t group_percent = 0;  // requests of a plan of several keys that go to all of them
  base::Duration breaker_open_max{0};
  bool shuts_down_at_end = false;  // otherwise it becomes idle

  // Whether nodes are checked against their ledgers. Without this check, a planted bug has to show
  // in the number of admitted requests.
  bool ledger = true;

  // The store's clock at the beginning, and its time at which a month or year ends.
  base::Instant start{0};
  base::Instant calendar_edge{0};
  // Faults happen until `calm_from`. From `measured_from` to `measured_to` the fleet must do its
  // work. Then nobody asks any more, and by `end` all leases have been returned.
  base::Duration calm_from{0};
  base::Duration measured_from{0};
  base::Duration measured_to{0};
  base::Duration end{0};
};

Plan Draw(uint64_t seed);
std::string ToString(const Plan& plan);

}  // namespace headgate::simulation
