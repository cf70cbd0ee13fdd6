// The vectors of tests/vectors as scenarios, so that every store and front answers them.
#pragma once

#include <string>
#include <vector>

#include "headgate/testing/scenario.h"

namespace headgate::testing {

// One scenario for each case of the file; the line of a step is its number in the case, from 1.
std::vector<Scenario> VectorScenarios(const std::string& file);

}  // namespace headgate::testing
