#include "tests/scenarios/vector_scenarios.h"

#include <fmt/format.h>

#include "tests/vectors/vectors.h"

namespace headgate::testing {
namespace {

using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using nlohmann::json;

ScenarioRule RuleOf(const LimitSpec& spec) {
  return {.name = "rule", .limits = {*Limit::Make(spec)}};
}

Expectation ExpectationOf(const json& step) {
  const auto duration = [&step](const char* field) {
    return Duration(step.at(field).get<int64_t>());
  };
  const Duration retry = duration("retry_after_ns");
  return {.allowed = step.at("allowed").get<bool>(),
          .remaining = step.at("remaining").get<uint64_t>(),
          .retry_after = retry < Duration(0) ? algorithm::kNever : retry,
          .reset_after = duration("reset_after_ns"),
          .wait = duration("wait_ns")};
}

Scenario ScenarioOf(const std::string& path, const std::string& name, const json& test) {
  LimitSpec spec = vectors::SpecOf(name, test.at("limit"));
  const Duration shift = vectors::ShiftOf(spec);
  Scenario scenario{.path = path, .rules = {RuleOf(spec)}, .steps = {}};
  for (const json& step : test.at("steps")) {
    Step& next = scenario.steps.emplace_back();
    next.line = static_cast<uint32_t>(scenario.steps.size());
    next.at = base::Instant::FromNanos(step.at("at_ns").get<int64_t>()) + shift;
    if (step.contains("change")) {
      vectors::Apply(step["change"], spec);
      next.action = RuleOf(spec);
    } else {
      next.action = Ask{.rule = "rule",
                        .key = "key",
                        .cost = step.at("cost").get<algorithm::Cost>(),
                        .expected = ExpectationOf(step)};
    }
  }
  return scenario;
}

}  // namespace

std::vector<Scenario> VectorScenarios(const std::string& file) {
  const json vectors = vectors::Read(file);
  std::vector<Scenario> scenarios;
  for (const json& test : vectors.at("cases")) {
    const std::string path = fmt::format("{} case {}", file, scenarios.size() + 1);
    scenarios.push_back(ScenarioOf(path, vectors::AlgorithmOf(vectors, test), test));
  }
  return scenarios;
}

}  // namespace headgate::testing
