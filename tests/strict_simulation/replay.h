// Compares all requests to a fleet, and its answers, with one bucket.
//
//   reference    The writes to a value have an order. The requests of their rounds are given in
//                this order to the reference model (tests/model), at the times of their decisions.
//                Every answer equals that of the model to the nanosecond, also an answer that comes
//                from a read, in the state that was read. So the fleet admits exactly the requests
//                that one bucket admits.
//   real time    A request is decided between its call and its answer: by a write that is later
//                than the call, or in a state that was not replaced before the call.
//   accounts     A request that was answered by a write was counted once. One that failed was not
//                counted, unless its status says that it may have been.
//   bound        In every interval of true time, buckets admit at most capacity + rate · (t + D).
//                This includes leased requests.
//   failures     Nothing is allowed without the store.
//   progress     Without faults every request is answered.
#pragma once

#include <string>
#include <vector>

#include "tests/strict_simulation/instance.h"
#include "tests/strict_simulation/plan.h"
#include "tests/strict_simulation/service.h"

namespace headgate::strict_simulation {

struct Evidence {
  const Plan& plan;
  const std::vector<Value>& values;
  const std::vector<Operation>& operations;
  const std::vector<Put>& puts;
  const std::vector<Told>& told;
};

// Whether a write of a round with this operation was applied.
bool WasCounted(const Evidence& evidence, const Operation& operation);

// Empty if there is none.
std::string FirstContradiction(const Evidence& evidence);

}  // namespace headgate::strict_simulation
