// `headgate validate FILES…`: shows every problem in rule files, without a server.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Validate(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
