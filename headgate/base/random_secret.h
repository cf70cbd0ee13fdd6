// Secrets from the operating system's random source.
#pragma once

#include "headgate/base/hash.h"

namespace headgate::base {

HashSecret RandomHashSecret();

}  // namespace headgate::base
