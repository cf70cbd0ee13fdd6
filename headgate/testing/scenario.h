// A scenario: behaviour as text. Rules, requests at given times, and what must come of each, to the
// nanosecond.
//
//   # A burst of five, then one every ten seconds.
//   rule login = 1 per 10s burst 5
//   at 0s      login:ann x5       allow remaining 0
//   at 0s      login:ann          deny  retry 10s reset 50s
//
// The one format for tests, bug reports and documents; docs/reference/scenarios.md describes it
// whole. This file turns text into a Scenario; scenario_runner.h runs one.
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

// Bounds of what is read: a scenario is written by a person, and is run by whoever is handed it.
inline constexpr size_t kScenarioBytesMax = 1 << 20;
inline constexpr uint64_t kScenarioRepeatMax = 1'000'000;     // xN of one line
inline constexpr uint64_t kScenarioRequestsMax = 10'000'000;  // of the whole file
inline constexpr size_t kScenarioProblemsMax = 100;           // reported of one file

struct ScenarioRule {
  std::string name;
  std::vector<algorithm::Limit> limits;  // at least one; all must allow
};

// What a line says must come of its request. What it does not name may be anything.
struct Expectation {
  bool allowed = true;
  std::optional<uint64_t> remaining{};
  std::optional<base::Duration> retry_after{};  // kNever for "retry never"
  std::optional<base::Duration> reset_after{};
  std::optional<base::Duration> wait{};
};

enum class Operation : uint8_t { kRequest, kRefund, kReset };

// What is asked of the bucket that `rule` has for `key`.
struct Ask {
  Operation operation = Operation::kRequest;
  std::string rule;
  std::string key;
  algorithm::Cost cost = 1;
  uint64_t repeat = 1;
  Expectation expected{};  // of a request alone
};

struct Step {
  uint32_t line = 0;
  base::Instant at{0};                     // may be earlier than that of the step before
  std::variant<ScenarioRule, Ask> action;  // the rule as it is from now on, or a question
};

struct Scenario {
  std::string path;
  std::vector<ScenarioRule> rules;  // as they are at the beginning
  std::vector<Step> steps;          // in the order of the file
};

struct ParsedScenario {
  Scenario scenario;                      // meaningful only without problems
  std::vector<ScenarioProblem> problems;  // all of them, in the order of the file

  bool ok() const { return problems.empty(); }
};

// `path` is only remembered, for messages.
ParsedScenario ParseScenario(std::string_view path, std::string_view text);

// "path:line:column: message".
std::string PlaceAndMessage(std::string_view path, const ScenarioProblem& problem);
// The same and, on a second line, the hint.
std::string Describe(std::string_view path, const ScenarioProblem& problem);

}  // namespace headgate::testing
