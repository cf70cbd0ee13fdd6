#include "tests/scenarios/scenario_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "headgate/testing/scenario.h"
#include "tests/source_dir.h"

namespace headgate::testing {

std::vector<std::filesystem::path> ScenarioFiles() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() / "tests/scenarios")) {
    if (entry.path().extension() == ".scenario") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

void ExpectAsInFile(const std::filesystem::path& path, Driver& driver) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string name = path.filename();
  const ParsedScenario parsed = ParseScenario(name, text);
  for (const ScenarioProblem& problem : parsed.problems) ADD_FAILURE() << Describe(name, problem);
  if (!parsed.ok()) return;
  ASSERT_FALSE(parsed.scenario.steps.empty()) << name << " asks nothing";
  for (const ScenarioDifference& difference : RunScenario(parsed.scenario, driver))
    ADD_FAILURE() << Describe(name, difference);
}

}  // namespace headgate::testing
