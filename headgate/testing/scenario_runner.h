// Runs a scenario in virtual time against whatever can answer it: the bare arithmetic, a limiter
// over any store, a protocol's front fed with bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/base/status.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

// The world that a scenario runs in. A fresh one for each scenario.
class Driver {
 public:
  virtual ~Driver() = default;

  // The shortest time that this way of asking can show. It rounds up; what is expected is rounded
  // alike.
  virtual base::Duration precision() const { return base::Duration(1); }

  // All rules, as they are from `now` on. Buckets stay.
  virtual absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) = 0;

  // Asks once, whatever ask.repeat says. The decision of a refund or reset is not looked at.
  virtual absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) = 0;
};

// A line that came out differently: "login.scenario:5: expected …, got …".
struct ScenarioDifference {
  uint32_t line = 0;
  std::string message;  // without path and line
};

// In the order of the file; empty where everything came as expected.
std::vector<ScenarioDifference> RunScenario(const Scenario& scenario, Driver& driver);

std::string Describe(std::string_view path, const ScenarioDifference& difference);

}  // namespace headgate::testing
