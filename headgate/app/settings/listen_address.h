// An address to listen on, with the settings of this listener:
//
//   127.0.0.1:8080?fields=draft-7
//   :8080?refusal_file=/etc/refusal.yaml   the body of refusals
//   tls:127.0.0.1:8443             with TLS
//   :8080?proxy_from=10.0.0.0/8    connections from this network begin with a PROXY header
//   unix:/run/headgate?mode=0660   a Unix socket whose file has these permissions
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/server.h"
#include "headgate/wire/http_fields.h"

namespace headgate::app {

// The prefix of an address with TLS.
inline constexpr std::string_view kTlsAddress = "tls:";

struct ListenAddress {
  net::Endpoint endpoint;
  bool tls = false;
  // The dialect of answers over HTTP; absent: rate_limit_fields.
  std::optional<wire::RateLimitDialect> fields{};
  // The file with the body of refusals; empty: that of the setting refusal_file.
  std::string refusal_file{};
  // Whose connections begin with a PROXY header.
  net::ProxyTrust proxies{};
  // Only for a Unix socket; absent: as the process's umask has them.
  std::optional<uint32_t> mode{};
};

// InvalidArgument with a message that says what is wrong and what would be valid.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

// What to do if the system does not let us listen there.
std::string_view HintOnListening(const net::Endpoint& endpoint);

// The address without its settings.
std::string_view AddressPart(std::string_view text);

}  // namespace headgate::app
