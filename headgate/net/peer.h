// The other end of a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headgate/base/ip_address.h"
#include "headgate/net/alpn.h"

struct sockaddr_storage;

namespace headgate::net {

struct Peer {
  bool loopback = true;                 // a loopback address or a Unix socket
  std::optional<base::IpAddress> ip{};  // absent for a Unix socket
  std::string address{};   // for people: "10.0.0.7:50000", "[2001:db8::1]:50000" or "unix"
  bool encrypted = false;  // by TLS
  // The protocol that a client with TLS has agreed on, once the handshake is complete.
  Alpn alpn = Alpn::kNone;
  // The name in its certificate, if that was verified: its first subject alternative name of the
  // kinds DNS, URI and email, or else its common name in UTF-8. May have any bytes.
  std::string certificate_name{};
};

Peer PeerOf(const sockaddr_storage& address);
// A client that a proxy names. It is never local, even if it has a loopback address: that is an
// address of the proxy's machine.
Peer PeerBehindProxy(const base::IpAddress& ip, uint16_t port);

}  // namespace headgate::net
