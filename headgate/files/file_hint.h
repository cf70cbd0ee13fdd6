// What to do about a file or socket that this user may not use. The cause decides: a user who may
// not read a file is not helped by a hint about its content.
#pragma once

#include <string>
#include <string_view>

#include "headgate/net/endpoint.h"

namespace headgate::files {

// The hint for a file that cannot be used: "let this user read it" if the permissions forbid to
// read it, `otherwise` for any other cause.
std::string HintOnFile(const std::string& path, std::string_view otherwise);

// The hint for a server that cannot be reached: how to let this user in if it is a Unix socket
// whose permissions forbid to connect, `otherwise` for any other cause.
std::string HintOnServer(const net::Endpoint& server, std::string_view otherwise);

}  // namespace headgate::files
