// The part of a server's error that may be shown. Servers quote commands that they do not know or
// do not allow, with their arguments; one argument is the key, which contains a client's data.
#pragma once

#include <string>
#include <string_view>

namespace headgate::store::redis {

// The error up to the place where it may begin to quote a call's arguments, with "…" for the rest.
// If the error ends with the script and line that failed, which contain no arguments, that end is
// kept.
std::string WithoutArguments(std::string_view error);

}  // namespace headgate::store::redis
