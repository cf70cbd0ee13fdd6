#include "headgate/net/connector.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/net/name_targets.h"

namespace headgate::net {

std::string StreamTarget::ToString() const {
  if (!unix_path.empty()) return fmt::format("unix:{}", unix_path);
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

StreamTarget TargetOf(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return {.unix_path = endpoint.address};
  switch (endpoint.kind) {
    case Endpoint::Kind::kAllInterfaces:
      return {.host = "127.0.0.1", .port = endpoint.port};
    case Endpoint::Kind::kLocalhost:
      return {.host = "localhost", .port = endpoint.port};
    default:
      return {.host = endpoint.address, .port = endpoint.port};
  }
}

Connector::Connector(EventLoop& loop, const StreamTarget& target, Done done)
    : poller_(loop.sockets()), done_(std::move(done)), addresses_(KnownAddresses(target)) {
  if (!addresses_.empty()) {
    TryNextAddress();
    return;
  }
  lookup_ = std::make_unique<NameLookup>(loop, target.host, target.port,
                                         [this](const absl::StatusOr<SocketAddresses>& found) {
                                           if (!found.ok()) return Finish(found.status());
                                           addresses_ = *found;
                                           TryNextAddress();
                                         });
}

Connector::~Connector() { poller_.Remove(socket_.get(), *this); }

void Connector::TryNextAddress() {
  while (next_address_ < addresses_.size()) {
    if (BeginToConnect(addresses_[next_address_++])) return;
  }
  poller_.CallAgain(*this);
}

bool Connector::BeginToConnect(const SocketAddress& address) {
  socket_ =
      FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) {
    GiveUpSocket(errno);
    return false;
  }
  const int on = 1;
  if (!address.is_unix()) ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const bool begun =
      ::connect(socket_.get(), address.get(), address.size) == 0 || errno == EINPROGRESS;
  if (begun && poller_.Add(socket_.get(), *this, SocketPoller::kOutputOnce)) return true;
  GiveUpSocket(errno);
  return false;
}

void Connector::GiveUpSocket(int error) {
  error_ = std::generic_category().message(error);
  socket_ = FileDescriptor();
}

// The socket becomes writable when its connection is established or has failed.
void Connector::OnEvents(uint32_t /*events*/) {
  if (!socket_) return Finish(absl::UnavailableError(error_));
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  poller_.Remove(socket_.get(), *this);
  if (error == 0) return Finish(std::move(socket_));
  GiveUpSocket(error);
  TryNextAddress();
}

void Connector::Finish(absl::StatusOr<FileDescriptor> result) {
  const Done done = std::move(done_);
  done(std::move(result));
}

}  // namespace headgate::net
