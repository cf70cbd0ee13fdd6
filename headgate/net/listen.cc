#include "headgate/net/listen.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include "headgate/base/time.h"
#include "headgate/net/socket_address.h"
#include "headgate/net/socket_option.h"
#include "headgate/net/unix_listener.h"

namespace headgate::net {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::Status ListenError(const Endpoint& endpoint, int error) {
  const std::string what =
      fmt::format("cannot listen on {}: {}", endpoint.ToString(), ErrorText(error));
  if (error == EADDRINUSE)
    return absl::AlreadyExistsError(what +
                                    "; another process has it: stop it or choose another port");
  if (error == EACCES) return absl::PermissionDeniedError(what + "; choose a port from 1024 on");
  if (error == EADDRNOTAVAIL)
    return absl::UnavailableError(what + "; no interface of this machine has that address");
  return absl::UnavailableError(what);
}

enum class Sharing { kAlone, kFirstOfSeveral, kFurther };

// Returns 0 or the error number.
int BindAndListen(SocketAddress address, Sharing sharing, int backlog, FileDescriptor& socket) {
  socket =
      FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  const int fd = socket.get();
  if (address.family() == AF_INET6) {
    // "::" accepts both families; any other IPv6 address accepts only IPv6.
    const bool any = std::memcmp(&reinterpret_cast<sockaddr_in6*>(address.get())->sin6_addr,
                                 &in6addr_any, sizeof(in6_addr)) == 0;
    SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, any ? 0 : 1);
  }
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (sharing == Sharing::kFurther) SetOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (::bind(fd, address.get(), address.size) != 0) return errno;
  if (sharing == Sharing::kFirstOfSeveral) SetOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (::listen(fd, backlog) != 0) return errno;
  return 0;
}

uint16_t BoundPort(int fd) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (::getsockname(fd, address.get(), &address.size) != 0) return 0;
  // The port is at the same offset in both families.
  sockaddr_in v4{};
  std::memcpy(&v4, &address.storage, sizeof(v4));
  return ntohs(v4.sin_port);
}

// Listens on one IP address for every loop. `port` 0 is replaced by the port that the system
// chooses.
int ListenIp(SocketAddress (*make)(const char*, uint16_t), const char* address, uint16_t& port,
             int backlog, ListeningSockets& sockets) {
  const size_t loops = sockets.by_loop.size();
  for (size_t loop = 0; loop < loops; ++loop) {
    FileDescriptor socket;
    const Sharing sharing = loop > 0    ? Sharing::kFurther
                            : loops > 1 ? Sharing::kFirstOfSeveral
                                        : Sharing::kAlone;
    if (const int error = BindAndListen(make(address, port), sharing, backlog, socket))
      return error;
    if (port == 0) port = BoundPort(socket.get());
    sockets.by_loop[loop].push_back(std::move(socket));
  }
  return 0;
}

bool NoIpv6(int error) { return error == EAFNOSUPPORT || error == EADDRNOTAVAIL; }

}  // namespace

absl::StatusOr<ListeningSockets> ListenOn(const Endpoint& endpoint, uint32_t loops, int backlog,
                                          std::optional<uint32_t> unix_mode) {
  ListeningSockets sockets;
  sockets.bound = endpoint;
  sockets.by_loop.resize(loops);
  uint16_t& port = sockets.bound.port;
  int error = 0;
  switch (endpoint.kind) {
    case Endpoint::Kind::kIpv4:
      error = ListenIp(Ipv4Socket, endpoint.address.c_str(), port, backlog, sockets);
      break;
    case Endpoint::Kind::kIpv6:
      error = ListenIp(Ipv6Socket, endpoint.address.c_str(), port, backlog, sockets);
      break;
    case Endpoint::Kind::kAllInterfaces:
      error = ListenIp(Ipv6Socket, "::", port, backlog, sockets);
      if (NoIpv6(error)) error = ListenIp(Ipv4Socket, "0.0.0.0", port, backlog, sockets);
      break;
    case Endpoint::Kind::kLocalhost:
      error = ListenIp(Ipv4Socket, "127.0.0.1", port, backlog, sockets);
      if (error == 0) {
        const int error_v6 = ListenIp(Ipv6Socket, "::1", port, backlog, sockets);
        if (!NoIpv6(error_v6)) error = error_v6;
      }
      break;
    case Endpoint::Kind::kUnix: {
      HEADGATE_ASSIGN_OR_RETURN(
          FileDescriptor socket,
          ListenOnUnix(endpoint.address, {.backlog = backlog, .mode = unix_mode}));
      sockets.by_loop[0].push_back(std::move(socket));
      break;
    }
  }
  if (error != 0) return ListenError(endpoint, error);
  return sockets;
}

}  // namespace headgate::net
