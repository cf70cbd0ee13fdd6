// Every way there is to ask: a new store or front adds its line in drivers.cc, and runs all
// scenarios from then on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headgate/testing/scenario_runner.h"

namespace headgate::testing {

struct NamedDriver {
  std::string name;
  std::function<std::unique_ptr<Driver>()> make;  // a fresh world
};

const std::vector<NamedDriver>& Drivers();

}  // namespace headgate::testing
