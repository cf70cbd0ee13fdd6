// The HTTP format for a point in time (RFC 9110, 5.6.7).
#pragma once

#include <array>

#include "headgate/base/time.h"

namespace headgate::http {

// The Date field's value: "Sun, 06 Nov 1994 08:49:37 GMT".
std::array<char, 29> Date(base::WallTime now);

}  // namespace headgate::http
