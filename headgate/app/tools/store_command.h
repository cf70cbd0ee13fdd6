// headgate store: prepares what a shared store needs.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

// `headgate store create-table URL`.
int Store(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
