#include "headgate/net/peer.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "headgate/net/loopback.h"

namespace headgate::net {
namespace {

// Brackets for IPv6 only: an IPv4 address is written without, also if it is mapped into IPv6.
std::string AddressText(const base::IpAddress& ip, uint16_t port) {
  return fmt::format(fmt::runtime(ip.is_v4() ? "{}:{}" : "[{}]:{}"), base::ToString(ip), port);
}

Peer PeerAt(const base::IpAddress& ip, in_port_t port) {
  return {.loopback = IsLoopback(ip), .ip = ip, .address = AddressText(ip, ntohs(port))};
}

}  // namespace

Peer PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return PeerAt(base::IpAddress::FromV4(ntohl(v4.sin_addr.s_addr)), v4.sin_port);
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    return PeerAt(base::IpAddress::FromV6(v6.sin6_addr.s6_addr), v6.sin6_port);
  }
  return {.loopback = address.ss_family == AF_UNIX, .address = "unix"};
}

Peer PeerBehindProxy(const base::IpAddress& ip, uint16_t port) {
  return {.loopback = false, .ip = ip, .address = AddressText(ip, port)};
}

}  // namespace headgate::net
