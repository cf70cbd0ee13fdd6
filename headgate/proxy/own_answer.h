// Answers that the proxy gives itself: refusals, and failures of the upstream. A client of gRPC
// gets them in its form: status 200, and the outcome in grpc-status.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headgate/http/exchange.h"
#include "headgate/http/message.h"

namespace headgate::proxy {

struct OwnAnswer {
  int status = 502;
  std::string_view detail{};  // one sentence for people
  std::string_view hint{};    // may be empty
  // The error type of Proxy-Status (RFC 9209, 2.3), for example "connection_refused". Empty: no
  // such field.
  std::string_view error{};
  // The name of this proxy in Proxy-Status, as it is written there.
  std::string_view proxy = "headgate";
  // Further fields, for example Retry-After. May be null.
  const http::Fields* fields = nullptr;
};

// Sends the complete response. A HEAD gets no body. `time_of_day` is for Date.
void SendOwnAnswer(const http::RequestHead& request, const OwnAnswer& answer,
                   http::ServerExchange& exchange, base::WallTime time_of_day);

// Receives, and drops, the rest of a request that was answered already.
std::unique_ptr<http::RequestReceiver> DropRest(http::ServerExchange& exchange);

}  // namespace headgate::proxy
