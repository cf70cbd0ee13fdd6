// The version of Headgate.
#pragma once

#include <string_view>

namespace headgate::app {

// The project's version, as CMakeLists.txt says.
inline constexpr std::string_view kVersion = HEADGATE_VERSION;

}  // namespace headgate::app
