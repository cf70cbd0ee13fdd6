// Every scenario, as a GoogleTest suite that the test of a strict store on a real server runs:
// through the fronts, the limiter, the compare-and-set store and the adapter, in virtual time.
//
//   INSTANTIATE_TEST_SUITE_P(ZooKeeper, StrictScenario, EveryScenario<TimedStrictStore>(),
//                            NameOfStrictScenario);
//
// No scenario is left out: strict stores offer everything that a scenario can ask for, also the
// turns of a queue, refunds, resets, and changes of limits.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/cas/strict_rig.h"
#include "tests/scenarios/http_driver.h"
#include "tests/scenarios/resp_driver.h"
#include "tests/scenarios/scenario_files.h"

namespace headgate::testing {

struct StrictScenarioRun {
  std::filesystem::path path;
  std::string front;
  std::function<std::unique_ptr<Driver>()> make;

  friend std::ostream& operator<<(std::ostream& out, const StrictScenarioRun& run) {
    return out << run.path.filename() << " by " << run.front;
  }
};

class StrictScenario : public ::testing::TestWithParam<StrictScenarioRun> {};

TEST_P(StrictScenario, IsAnsweredAsInTheFile) {
  const std::unique_ptr<Driver> driver = GetParam().make();
  ExpectAsInFile(GetParam().path, *driver);
}

template <typename TimedStore>
auto EveryScenario() {
  const MakeSharedStore make = [](store::Store& local) {
    return std::make_unique<strict_test::StrictRig<TimedStore>>(local.limits());
  };
  std::vector<StrictScenarioRun> runs;
  for (const std::filesystem::path& path : ScenarioFiles()) {
    runs.push_back({path, "resp3",
                    [make] { return std::make_unique<RespDriver>(wire::RespVersion::k3, make); }});
    runs.push_back({path, "http", [make] { return std::make_unique<HttpDriver>(make); }});
  }
  return ::testing::ValuesIn(runs);
}

inline std::string NameOfStrictScenario(const ::testing::TestParamInfo<StrictScenarioRun>& info) {
  return info.param.path.stem().string() + "_" + info.param.front;
}

}  // namespace headgate::testing
