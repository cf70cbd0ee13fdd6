// headgate hash-password: the hash of a password for the file of users.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/console.h"

namespace headgate::app {

// Reads the password from the terminal without showing it, twice, or the first line of stdin.
int HashPassword(const std::vector<std::string>& arguments, const Console& console);

}  // namespace headgate::app
