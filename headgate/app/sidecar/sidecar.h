// `headgate sidecar`: a proxy in front of one service, whose clients share its capacity fairly.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Sidecar(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
