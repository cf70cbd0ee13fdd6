// What `headgate scenario FILE…` does.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace headgate::testing {

// What is wrong with a file, and what to do about it.
using ScenarioErrors = std::function<void(std::string_view what, std::string_view hint)>;

// Runs each file through a limiter over a memory store of its own. `out` gets a line for each file,
// or each line that differs ("file:line: expected …, got …"); `on_error` hears of files that cannot
// be read or are not scenarios. Returns the exit status: 0, 1 if a line differs, 2 after an error.
int RunScenarioFiles(std::span<const std::string> paths, std::ostream& out,
                     const ScenarioErrors& on_error);

}  // namespace headgate::testing
