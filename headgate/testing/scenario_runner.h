// Runs a scenario in virtual time against anything that can answer it: the bare arithmetic, a
// limiter over any store, or a protocol's front fed with bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/base/status.h"
#include "headgate/testing/scenario.h"

namespace headgate::testing {

// The system that a scenario runs against. Use a new driver for each scenario.
class Driver {
 public:
  virtual ~Driver() = default;

  // The time resolution of this driver's answers, which it rounds up. Expected values are rounded
  // in the same way.
  virtual base::Duration precision() const { return base::Duration(1); }

  // Sets all rules from `now` on. Buckets are kept.
  virtual absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) = 0;

  // Performs the operation once, ignoring ask.repeat. The decision of a refund or reset is ignored.
  virtual absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) = 0;
};

// A line with an unexpected result: "login.scenario:5: expected …, got …".
struct ScenarioDifference {
  uint32_t line = 0;
  std::string message;  // without path and line
};

// All differences in file order; empty if everything was as expected.
std::vector<ScenarioDifference> RunScenario(const Scenario& scenario, Driver& driver);

std::string Describe(std::string_view path, const ScenarioDifference& difference);

}  // namespace headgate::testing
