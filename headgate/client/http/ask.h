// Sends one HTTP request for a command-line tool and waits for the answer. All waits and sizes are
// bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/client/http/request.h"
#include "headgate/net/endpoint.h"

namespace headgate::client::http {

// A longer body is an error.
inline constexpr size_t kAnswerBytesMax = size_t{16} << 20;

// A server, and how to reach it.
struct ServerAccess {
  net::Endpoint endpoint{};
  bool tls = false;
  std::string ca_file{};     // PEM; if empty, the system's authorities
  std::string tls_name{};    // the name required in the certificate; empty: the endpoint's address
  std::string credential{};  // sent as bearer token: a credential, or USER:PASSWORD; empty: none
};

// Unavailable if the connection or its TLS handshake fails, Unauthenticated if the server's
// certificate is not trusted or has another name, DeadlineExceeded if the exchange takes longer
// than `timeout`, DataLoss if the answer is not HTTP, ends early or is too long.
absl::StatusOr<Answer> Ask(const ServerAccess& server, Request request, base::Duration timeout);

absl::StatusOr<Answer> GetFrom(const ServerAccess& server, std::string target,
                               base::Duration timeout);
absl::StatusOr<Answer> PostJson(const ServerAccess& server, std::string target, std::string body,
                                base::Duration timeout);

}  // namespace headgate::client::http
