// A scenario describes behavior as text: rules, requests at given times, and the expected decision
// of each, to the nanosecond.
//
//   # A burst of five, then one every ten seconds.
//   rule login = 1 per 10s burst 5
//   at 0s      login:ann x5       allow remaining 0
//   at 0s      login:ann          deny  retry 10s reset 50s
//
// The format of tests, bug reports and documents; docs/reference/scenarios.md describes it fully.
// This file parses the text into a Scenario; scenario_runner.h runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/testing/line_reader.h"

namespace headgate::testing {

// Bounds on the input. People write scenarios, and others run them without checking.
inline constexpr size_t kScenarioBytesMax = 1 << 20;
inline constexpr uint64_t kScenarioRepeatMax = 1'000'000;     // xN on one line
inline constexpr uint64_t kScenarioRequestsMax = 10'000'000;  // in the whole file
inline constexpr size_t kScenarioProblemsMax = 100;           // reported for one file

struct ScenarioRule {
  std::string name;
  std::vector<algorithm::Limit> limits;  // at least one; all must allow
};

// The expected decision for a line's request. Fields that the line does not name are not checked.
struct Expectation {
  bool allowed = true;
  std::optional<uint64_t> remaining{};
  std::optional<base::Duration> retry_after{};  // kNever for "retry never"
  std::optional<base::Duration> reset_after{};
  std::optional<base::Duration> wait{};
};

// A request, refund or reset of the bucket of `rule` for `key`.
struct Ask {
  enum class Operation : uint8_t { kRequest, kRefund, kReset };

  Operation operation = Operation::kRequest;
  std::string rule;
  std::string key;
  algorithm::Cost cost = 1;
  uint64_t repeat = 1;
  Expectation expected{};  // only for requests
};

struct Step {
  uint32_t line = 0;
  base::Instant at{0};                     // may be earlier than in the previous step
  std::variant<ScenarioRule, Ask> action;  // a rule that is in force from now on, or an operation
};

struct Scenario {
  std::string path;
  std::vector<ScenarioRule> rules;  // initial rules
  std::vector<Step> steps;          // in file order
};

struct ParsedScenario {
  Scenario scenario;                      // valid only without problems
  std::vector<ScenarioProblem> problems;  // all of them, in file order

  bool ok() const { return problems.empty(); }
};

// `path` is only used in messages.
ParsedScenario ParseScenario(std::string_view path, std::string_view text);

// "path:line:column: message".
std::string PlaceAndMessage(std::string_view path, const ScenarioProblem& problem);
// PlaceAndMessage and, on a second line, the hint.
std::string Describe(std::string_view path, const ScenarioProblem& problem);

}  // namespace headgate::testing
