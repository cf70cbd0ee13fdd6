// The system's form of an address to bind or to connect to.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace headgate::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool is_unix() const { return family() == AF_UNIX; }
  // "192.0.2.1:80" or "[2001:db8::1]:80". Only for IPv4 and IPv6.
  std::string ToString() const;
};

// `address` is an address in the system's spelling.
SocketAddress Ipv4Socket(const char* address, uint16_t port);
SocketAddress Ipv6Socket(const char* address, uint16_t port);
// A path that is too long for the system is cut.
SocketAddress UnixSocket(const std::string& path);

}  // namespace headgate::net
