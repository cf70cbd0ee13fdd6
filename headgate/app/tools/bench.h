// headgate bench: how many decisions a server gives, and how long they take.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Bench(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
