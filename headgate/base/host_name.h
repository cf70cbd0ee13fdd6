// The name of this machine, for people.
#pragma once

#include <string>

namespace headgate::base {

// Empty if the system does not tell it.
std::string HostName();

}  // namespace headgate::base
