// Reads how a proxy describes the client's request in its own request to /auth.
#pragma once

#include "headgate/http/handler.h"
#include "headgate/mapping/mapping.h"

namespace headgate::front::auth {

// Proxies ask at this path. Below it the path is the proxy's own, except for
// OriginalRequest::kLine: then the path of the client's request follows.
inline constexpr std::string_view kPath = "/auth";

// Fills `head` with views of `request`. Returns false if the description is ambiguous: a header
// that must be single comes twice.
bool ReadOriginalRequest(const http::Request& request, mapping::OriginalRequest form,
                         mapping::DescribedRequest& head);

}  // namespace headgate::front::auth
