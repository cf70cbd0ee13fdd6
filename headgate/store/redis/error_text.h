// The part of a server's error that may be shown. Servers repeat commands that they do not know or
// do not allow, and with them their arguments; one of these is the key, which holds a client's
// data.
#pragma once

#include <string>
#include <string_view>

namespace headgate::store::redis {

// The error up to the place where it may begin to repeat a call's arguments, with "…" for the rest.
// If it ends with the script and line that failed, which hold no arguments, that end is kept too.
std::string WithoutArguments(std::string_view error);

}  // namespace headgate::store::redis
