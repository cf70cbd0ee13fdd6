// Reads the file with the body of refusals that a setting names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headgate/rule/problem.h"
#include "headgate/rule/refusal.h"

namespace headgate::app {

struct RefusalFile {
  std::shared_ptr<const rule::Refusal> refusal{};  // null if there are problems
  std::vector<rule::Problem> problems{};
};

// Without a path there is no refusal, and no problem.
RefusalFile ReadRefusalFile(const std::string& path);

}  // namespace headgate::app
