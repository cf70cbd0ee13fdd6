// Implements `headgate scenario FILE…`.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace headgate::testing {

// Called with a problem of a file and a suggestion how to fix it.
using ScenarioErrors = std::function<void(std::string_view what, std::string_view hint)>;

// Runs each file with its own limiter and memory store. `out` gets one line per file, or one per
// line that differs ("file:line: expected …, got …"). `on_error` is called for files that cannot be
// read or are not scenarios. Returns the exit status: 0, 1 if a line differs, 2 after an error.
int RunScenarioFiles(std::span<const std::string> paths, std::ostream& out,
                     const ScenarioErrors& on_error);

}  // namespace headgate::testing
