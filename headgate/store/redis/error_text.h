// What of a server's error may be shown. Servers repeat what they were sent: of a command that they do not know, its
// arguments, and among them is the key, which holds what a client sent.
#pragma once

#include <string>
#include <string_view>

namespace headgate::store::redis {

// The error up to where it may begin to repeat a call's arguments; "…" stands for what is left out.
std::string WithoutArguments(std::string_view error);

}  // namespace headgate::store::redis
