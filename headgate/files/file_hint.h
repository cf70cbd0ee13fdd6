// What to do about a file or socket that this user may not use. The cause decides: a user who may
// not read a file is not helped by a hint about its content.
#pragma once

#include <string>
#include <string_view>

#include "headgate/net/endpoint.h"

namespace headgate::files {

// The hint for a file that cannot be used. If the permissions forbid reading it, the hint is "let
// this user read it"; for any other cause it is `otherwise`.
std::string HintOnFile(const std::string& path, std::string_view otherwise);

// The hint for a server that cannot be reached. If it is a Unix socket whose permissions forbid
// this user to connect, the hint says how to let the user in; for any other cause it is
// `otherwise`.
std::string HintOnServer(const net::Endpoint& server, std::string_view otherwise);

}  // namespace headgate::files
