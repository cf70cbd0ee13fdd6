// `headgate serve`: the server, from its settings to its end.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/console.h"

namespace headgate::app {

int Serve(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
