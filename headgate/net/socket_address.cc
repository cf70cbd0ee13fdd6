#include "headgate/net/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace headgate::net {
namespace {

// Converts the family's own address type to the generic one.
template <typename Address>
SocketAddress Generic(const Address& address) {
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof(address));
  result.size = sizeof(address);
  return result;
}

}  // namespace

SocketAddress Ipv4Socket(const char* address, uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  inet_pton(AF_INET, address, &v4.sin_addr);
  return Generic(v4);
}

SocketAddress Ipv6Socket(const char* address, uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  inet_pton(AF_INET6, address, &v6.sin6_addr);
  return Generic(v6);
}

SocketAddress UnixSocket(const std::string& path) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), std::min(path.size(), sizeof(un.sun_path) - 1));
  return Generic(un);
}

std::string SocketAddress::ToString() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = ::getnameinfo(get(), size, host, sizeof(host), port, sizeof(port),
                                  NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return ::gai_strerror(error);
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                              : fmt::format("{}:{}", host, port);
}

}  // namespace headgate::net
