// Runs every .scenario file in this folder and every vector of tests/vectors through all drivers:
// the bare arithmetic, and a limiter over each store behind each front. Differences are reported as
// by `headgate scenario`.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headgate/testing/scenario.h"
#include "headgate/testing/scenario_runner.h"
#include "tests/scenarios/drivers.h"
#include "tests/scenarios/scenario_files.h"
#include "tests/scenarios/vector_scenarios.h"
#include "tests/vectors/vectors.h"

namespace headgate::testing {
namespace scenario_test {

class ScenarioFile : public ::testing::Test {
 public:
  ScenarioFile(std::filesystem::path path, const NamedDriver& driver)
      : path_(std::move(path)), driver_(driver) {}

  void TestBody() override {
    const std::unique_ptr<Driver> driver = driver_.make();
    ExpectAsInFile(path_, *driver);
  }

 private:
  const std::filesystem::path path_;
  const NamedDriver& driver_;
};

// The vectors of one file, each case with fresh buckets.
class VectorFile : public ::testing::Test {
 public:
  VectorFile(std::string file, const NamedDriver& driver)
      : file_(std::move(file)), driver_(driver) {}

  void TestBody() override {
    const std::vector<Scenario> cases = VectorScenarios(file_);
    ASSERT_GE(cases.size(), 40u);
    for (const Scenario& scenario : cases) {
      const std::unique_ptr<Driver> driver = driver_.make();
      for (const ScenarioDifference& difference : RunScenario(scenario, *driver)) {
        ADD_FAILURE() << Describe(scenario.path, difference) << " (the line is the step, from 1)";
      }
      if (HasFailure()) return;
    }
  }

 private:
  const std::string file_;
  const NamedDriver& driver_;
};

void RegisterVectors() {
  for (const std::string file : vectors::kFiles) {
    for (const NamedDriver& driver : Drivers()) {
      ::testing::RegisterTest(
          ("vectors_" + file).c_str(), driver.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [file, &driver]() -> ::testing::Test* { return new VectorFile(file, driver); });
    }
  }
}

void RegisterFiles() {
  for (const std::filesystem::path& path : ScenarioFiles()) {
    for (const NamedDriver& driver : Drivers()) {
      ::testing::RegisterTest(
          path.stem().c_str(), driver.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [path, &driver]() -> ::testing::Test* { return new ScenarioFile(path, driver); });
    }
  }
}

}  // namespace scenario_test
}  // namespace headgate::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  headgate::testing::scenario_test::RegisterFiles();
  headgate::testing::scenario_test::RegisterVectors();
  return RUN_ALL_TESTS();
}
