#include "headgate/net/name_targets.h"

#include <netdb.h>
#include <netinet/in.h>

namespace headgate::net {

SocketAddresses KnownAddresses(const StreamTarget& target) {
  if (!target.unix_path.empty()) return {UnixSocket(target.unix_path)};
  // Known without a lookup, because the machine may have no hosts file.
  if (target.host == "localhost")
    return {Ipv4Socket("127.0.0.1", target.port), Ipv6Socket("::1", target.port)};
  return AddressIn(target.host, target.port);
}

StreamTarget TargetOf(const SocketAddress& address) {
  char host[NI_MAXHOST] = "";
  (void)::getnameinfo(address.get(), address.size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  const uint16_t port = address.family() == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port
                            : reinterpret_cast<const sockaddr_in&>(address.storage).sin_port;
  return {.host = host, .port = ntohs(port)};
}

}  // namespace headgate::net
