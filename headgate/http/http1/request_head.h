// Reads the head of an HTTP/1 request. The target must be a path, or `*` for OPTIONS, or a URI
// whose authority is the same as in Host; without userinfo, fragment, or bytes beyond ASCII.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/message.h"

namespace headgate::http::http1 {

struct RequestRules {
  const Bounds& bounds;
  std::string_view scheme;  // of the connection: "http" or "https"
  std::span<const std::string> never_nominated;
  // Nothing is passed on, so the fields that Connection names stay.
  bool keeps_nominated = false;
};

// `head` is complete, from the request line to the empty line (HeadScan). `keep_alive`: whether the
// client wants to use the connection again.
Refusal ReadRequestHead(std::string_view head, const RequestRules& rules, RequestHead& request,
                        bool& keep_alive);

}  // namespace headgate::http::http1
