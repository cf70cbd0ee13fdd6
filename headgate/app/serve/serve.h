// `headgate serve`: reads the settings, runs the server and shuts it down.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Serve(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
