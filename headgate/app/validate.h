// `headgate validate FILES…`: everything that is wrong with rule files, without a server.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/console.h"

namespace headgate::app {

int Validate(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
