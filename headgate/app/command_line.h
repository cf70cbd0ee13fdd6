// Runs `headgate COMMAND …`.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

// `arguments` without the program's name. Returns the exit status.
int RunCommandLine(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
