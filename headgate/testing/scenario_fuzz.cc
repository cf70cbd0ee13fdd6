// Any bytes are parsed as a scenario, and run if they are valid.
#include <cstdint>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/testing/kernel_driver.h"
#include "headgate/testing/scenario.h"
#include "headgate/testing/scenario_runner.h"

using headgate::testing::ParsedScenario;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ParsedScenario parsed = headgate::testing::ParseScenario("fuzz.scenario", text);
  for (const auto& problem : parsed.problems) {
    HEADGATE_CHECK(!headgate::testing::Describe("fuzz.scenario", problem).empty());
  }
  if (!parsed.ok()) return 0;

  constexpr uint64_t kRequestsMax = 2'000;  // bounds the time of one input
  uint64_t requests = 0;
  for (const auto& step : parsed.scenario.steps) {
    if (const auto* ask = std::get_if<headgate::testing::Ask>(&step.action))
      requests += ask->repeat;
  }
  if (requests > kRequestsMax) return 0;
  headgate::testing::KernelDriver once;
  headgate::testing::KernelDriver again;
  const auto differences = RunScenario(parsed.scenario, once);
  HEADGATE_CHECK(differences.size() == RunScenario(parsed.scenario, again).size());
  return 0;
}
