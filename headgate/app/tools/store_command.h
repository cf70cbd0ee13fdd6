// headgate store: prepares a shared store, and shows a bucket in it.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

// `headgate store create-table URL`.
int Store(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
