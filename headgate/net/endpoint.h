// The text form of an address to listen on or to connect to:
//
//   127.0.0.1:8080   one IPv4 address        :8080       every interface, IPv4 and IPv6
//   [::1]:8080       one IPv6 address        unix:PATH   a Unix socket
//   localhost:8080   listening: both loopback addresses; connecting: the first that answers
//
// Other host names are not resolved: operators know the addresses of their servers. Port 0 asks the
// system for a free port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::net {

struct Endpoint {
  enum class Kind : uint8_t { kIpv4, kIpv6, kAllInterfaces, kLocalhost, kUnix };

  Kind kind = Kind::kIpv4;
  std::string address;  // for the two IP kinds, in the system's spelling; the path of a Unix socket
  uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;

  bool is_unix() const { return kind == Kind::kUnix; }
  // Whether it is reachable only from this machine, as an administration address should be.
  bool loopback() const;
  // The text that ParseEndpoint reads.
  std::string ToString() const;
};

// InvalidArgument with a message that says what is wrong and what would be valid.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

}  // namespace headgate::net
