// All drivers, one for each way to send requests. Add a line for a new store or front in
// drivers.cc, and all scenarios run through it.
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
