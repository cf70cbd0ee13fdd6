// `headgate check`: may this request pass? Asks a running server, or decides here with rules that
// are given.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/console.h"

namespace headgate::app {

int Check(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
