// What `headgate scenario FILE…` does.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace headgate::testing {

// Runs each file through a limiter over a memory store of its own. `out` gets a line for each file, or each line that
// differs ("file:line: expected …, got …"); `err` what cannot be read. Returns the exit code: 0, 1 where a line
// differs, 2 where a file is missing or is no scenario.
int RunScenarioFiles(std::span<const std::string> paths, std::ostream& out, std::ostream& err);

}  // namespace headgate::testing
