// The random choices of one seed: the fleet, its limits and demand, the kind of service, and the
// faults. Each seed switches some faults off, so no fault hides the effects of another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::strict_simulation {

struct KeyPlan {
  algorithm::LimitSpec spec;
  // Requests are answered from leases where possible. Otherwise each asks the store.
  bool leased = false;
  base::Duration pause{0};  // on average, between two requests of one instance
  uint64_t cost_max = 1;
  uint32_t peek_percent = 0;
  uint32_t refund_percent = 0;
  uint32_t reset_percent = 0;
};

// The faults that may happen to a call, in millionths.
struct CallFaults {
  uint32_t lost = 0;         // the message does not arrive
  uint32_t lost_answer = 0;  // the message arrives, but its answer does not
  uint32_t broken = 0;     // one of both is lost, and the caller is told that the connection broke
  uint32_t doubled = 0;    // a write arrives once more, later
  uint32_t slow = 0;       // the message or its answer takes up to `slow_max`
  uint32_t throttled = 0;  // ResourceExhausted
  uint32_t unavailable = 0;  // Unavailable
  uint32_t lost_race = 0;    // Aborted, although the version was right
};

struct Plan {
  uint64_t seed = 0;
  uint32_t instances = 1;
  std::vector<KeyPlan> keys;
  // Each write draws a random version, as DynamoDB's adapter does. Otherwise versions count, and
  // start again if a value is made again, as in ZooKeeper.
  bool random_versions = false;
  base::Duration timeout{0};
  base::Duration delay_max{0};  // of a message
  base::Duration slow_max{0};
  CallFaults faults{};
  // The largest difference between the clocks of two instances that decide.
  base::Duration skew{0};
  // The number of each fault, at random times.
  uint32_t crashes = 0;
  uint32_t pauses = 0;  // of an instance
  uint32_t cuts = 0;    // between an instance and the service
  uint32_t steps = 0;   // of an instance's wall clock, by up to an hour
  // No request is sent in this interval of some minutes, so that values expire and are removed. It
  // may be empty.
  base::Duration rest_from{0};
  base::Duration rest_until{0};

  // Faults happen until `calm_from`. From `well_from` on every request must be answered.
  base::Duration calm_from{0};
  base::Duration well_from{0};
  base::Duration end{0};
};

Plan Draw(uint64_t seed);
std::string ToString(const Plan& plan);

}  // namespace headgate::strict_simulation
