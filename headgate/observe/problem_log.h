// Problems of a file of rules or mappings, in the log.
#pragma once

#include <span>
#include <string_view>

#include "headgate/observe/log.h"
#include "headgate/rule/problem.h"

namespace headgate::observe {

// Logs one error for each problem.
void LogProblems(std::string_view event, std::span<const rule::Problem> problems, Log& log);

}  // namespace headgate::observe
