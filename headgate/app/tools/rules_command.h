// headgate rules: shows and changes the rules of a running fleet, over the admin address of one of
// its instances.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

// Returns the exit status.
int Rules(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
