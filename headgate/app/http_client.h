// One HTTP request to a Headgate server, from a command line.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"

namespace headgate::app {

struct HttpReply {
  int status = 0;
  std::string body;
};

// The parts of a whole answer. DataLoss where it is none.
absl::StatusOr<HttpReply> ParseHttpReply(std::string_view bytes);

// Unavailable if nobody takes the connection, DeadlineExceeded if a step takes longer than `timeout`, DataLoss if the
// answer is not HTTP.
absl::StatusOr<HttpReply> GetFrom(const net::Endpoint& server, std::string_view path, base::Duration timeout);
absl::StatusOr<HttpReply> PostJson(const net::Endpoint& server, std::string_view path, std::string_view body,
                                   base::Duration timeout);

}  // namespace headgate::app
