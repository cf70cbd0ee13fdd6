// `headgate explain DOMAIN k=v,…`: which rule applies, and why the others do not.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

int Explain(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
