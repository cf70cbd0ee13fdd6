// Reads the head of an HTTP/1 response, and determines how its body ends (RFC 9112, 6.3). A
// response that is ambiguous is refused: the connection must not be used again.
#pragma once

#include <cstdint>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/http1/body_reader.h"
#include "headgate/http/message.h"

namespace headgate::http::http1 {

// The request that a response answers.
struct Answered {
  bool head_only = false;       // HEAD: the response has no content
  std::string_view protocol{};  // that an Upgrade asked for; may be empty
};

struct ResponseBody {
  BodyFraming framing = BodyFraming::kNone;
  uint64_t bytes = 0;
  bool keep_alive = false;  // whether the connection can be used again afterwards
};

// `head` is complete, from the status line to the empty line (HeadScan). Only `detail` of the
// refusal is meaningful.
Refusal ReadResponseHead(std::string_view head, const Answered& request, const Bounds& bounds,
                         ResponseHead& response, ResponseBody& body);

}  // namespace headgate::http::http1
