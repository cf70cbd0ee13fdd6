// The scenario files of this folder.
#pragma once

#include <filesystem>
#include <vector>

#include "headgate/testing/scenario_runner.h"

namespace headgate::testing {

// In the order of their names.
std::vector<std::filesystem::path> ScenarioFiles();

// Runs the file in a new driver. Each difference is a failure of the present test.
void ExpectAsInFile(const std::filesystem::path& path, Driver& driver);

}  // namespace headgate::testing
