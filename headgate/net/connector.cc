#include "headgate/net/connector.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <utility>
#include <vector>

namespace headgate::net {
namespace {

namespace ip = boost::asio::ip;
using Socket = boost::asio::generic::stream_protocol::socket;
using SocketEndpoint = boost::asio::generic::stream_protocol::endpoint;
using ErrorCode = boost::system::error_code;

}  // namespace

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

// Operations in progress share ownership, so an attempt may outlive the connector.
struct Connector::Attempt : std::enable_shared_from_this<Connector::Attempt> {
  Attempt(EventLoop& loop, const StreamTarget& stream_target, Done call)
      : target(stream_target), done(std::move(call)), resolver(loop.io()), socket(loop.io()) {}

  void Start() {
    if (!target.unix_path.empty()) {
      addresses.emplace_back(boost::asio::local::stream_protocol::endpoint(target.unix_path));
      return TryNextAddress();
    }
    ErrorCode not_an_address;
    if (const auto address = ip::make_address(target.host, not_an_address); !not_an_address) {
      addresses.emplace_back(ip::tcp::endpoint(address, target.port));
      return TryNextAddress();
    }
    // Not resolved (RFC 6761), because the machine may lack the file that lists it.
    if (target.host == "localhost") {
      addresses.emplace_back(ip::tcp::endpoint(ip::address_v4::loopback(), target.port));
      addresses.emplace_back(ip::tcp::endpoint(ip::address_v6::loopback(), target.port));
      return TryNextAddress();
    }
    resolver.async_resolve(
        target.host, std::to_string(target.port), ip::resolver_base::numeric_service,
        [self = shared_from_this()](const ErrorCode& error, const auto& results) {
          if (!self->done) return;
          if (error) return self->Finish(absl::UnavailableError(error.message()));
          for (const auto& result : results) self->addresses.emplace_back(result.endpoint());
          self->TryNextAddress();
        });
  }

  void TryNextAddress() {
    ErrorCode ignored;
    socket.close(ignored);
    socket.async_connect(addresses[next_address++],
                         [self = shared_from_this()](const ErrorCode& error) {
                           if (!self->done) return;
                           if (!error) return self->OnConnected();
                           if (self->next_address < self->addresses.size())
                             return self->TryNextAddress();
                           self->Finish(absl::UnavailableError(error.message()));
                         });
  }

  void OnConnected() {
    ErrorCode error;
    socket.non_blocking(true, error);
    FileDescriptor connected(socket.release(error));
    if (target.unix_path.empty()) {
      const int on = 1;
      ::setsockopt(connected.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    Finish(std::move(connected));
  }

  void Finish(absl::StatusOr<FileDescriptor> result) {
    std::exchange(done, nullptr)(std::move(result));
  }

  void Cancel() {
    done = nullptr;
    ErrorCode ignored;
    resolver.cancel();
    socket.close(ignored);
  }

  const StreamTarget target;
  Done done;  // null once it has been called or the connector is destroyed
  ip::tcp::resolver resolver;
  Socket socket;
  std::vector<SocketEndpoint> addresses;
  size_t next_address = 0;
};

Connector::Connector(EventLoop& loop, const StreamTarget& target, Done done)
    : attempt_(std::make_shared<Attempt>(loop, target, std::move(done))) {
  attempt_->Start();
}

Connector::~Connector() { attempt_->Cancel(); }

}  // namespace headgate::net
