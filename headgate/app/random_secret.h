// Secrets from the operating system's random source.
#pragma once

#include "headgate/base/hash.h"

namespace headgate::app {

base::HashSecret RandomSecret();

}  // namespace headgate::app
