// The addresses of a service behind a sidecar, as --upstream names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/connector.h"

namespace headgate::proxy::upstream {

struct List {
  std::vector<net::StreamTarget> targets{};
  bool http2 = false;  // without TLS by prior knowledge
  bool tls = false;
  bool SameScheme(const List& other) const { return http2 == other.http2 && tls == other.tls; }
};
// "http://127.0.0.1:9000,127.0.0.1:9001", "h2c://[::1]:9000" or "http://unix:/run/service"; with
// TLS "https://HOST" and "h2://HOST". InvalidArgument says what would be valid.
absl::StatusOr<List> ParseList(std::string_view text);
// As ParseList reads it.
std::string ToString(const List& upstreams);

}  // namespace headgate::proxy::upstream
