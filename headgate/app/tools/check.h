// `headgate check`: may this request pass? Asks a running server, or decides by rules given as
// arguments.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Check(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
