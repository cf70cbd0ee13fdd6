// Where to listen, or whom to ask, as people write it:
//
//   127.0.0.1:8080   one IPv4 address        :8080       every interface, IPv4 and IPv6
//   [::1]:8080       one IPv6 address        unix:PATH   a Unix socket
//   localhost:8080   both loopback addresses where listening; the first that answers where asking
//
// Other host names are not resolved: whoever starts a server knows its addresses. Port 0 asks the
// system for a free one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::net {

struct Endpoint {
  enum class Kind : uint8_t { kIpv4, kIpv6, kAllInterfaces, kLocalhost, kUnix };

  Kind kind = Kind::kIpv4;
  std::string address;  // of the two IP kinds, as the system writes it; the path of a Unix socket
  uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;

  bool is_unix() const { return kind == Kind::kUnix; }
  // Reachable from this machine alone: what an administration address should be.
  bool loopback() const;
  // As ParseEndpoint reads it.
  std::string ToString() const;
};

// InvalidArgument with a sentence that says what is wrong and what would be right.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

}  // namespace headgate::net
