// Answers that the proxy gives itself: refusals, and failures of the upstream. A client of gRPC
// gets them in its form: status 200, and the outcome in grpc-status.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/exchange.h"
#include "headgate/http/message.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

// Which pages may read the proxy's own answers.
struct CorsOptions {
  std::vector<std::string> origins{};  // as wire/origin.h allows them
  // Pages may also read the rate limit fields of this dialect.
  wire::RateLimitDialect dialect = wire::RateLimitDialect::kDraft;
};

struct OwnAnswer {
  int status = 502;
  std::string_view detail{};  // one sentence for people
  std::string_view hint{};    // may be empty
  // The error type of Proxy-Status (RFC 9209, 2.3), for example "connection_refused". Empty: no
  // such field.
  std::string_view error{};
  // The name of this proxy in Proxy-Status, as it is written there.
  std::string_view proxy = "headgate";
  // The body; if `content_type` is empty, it is a problem document of the above.
  std::string_view content_type{};
  std::string_view body{};
  // Further fields, for example Retry-After. May be null.
  const http::Fields* fields = nullptr;
  const CorsOptions* cors = nullptr;  // null: no page of another origin
  // The form of the rate limit fields; absent if it is the one in `cors`.
  std::optional<wire::RateLimitDialect> dialect{};
};

// Sends the complete response. A HEAD gets no body. `time_of_day` is for Date.
void SendOwnAnswer(const http::RequestHead& request, const OwnAnswer& answer,
                   http::ServerExchange& exchange, base::WallTime time_of_day);

// Receives, and drops, the rest of a request that was answered already.
std::unique_ptr<http::RequestReceiver> DropRest(http::ServerExchange& exchange);

}  // namespace headgate::proxy
