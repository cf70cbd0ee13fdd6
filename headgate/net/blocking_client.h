// For tests: a client's connection that blocks. Every wait is bounded.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/socket_address.h"
#include "headgate/net/socket_option.h"

namespace headgate::net {

class BlockingClient {
 public:
  // `timeout` bounds connecting and each later step. Unavailable if nothing answers.
  static absl::StatusOr<BlockingClient> Connect(const Endpoint& endpoint, base::Duration timeout) {
    using Kind = Endpoint::Kind;
    const bool is_address = endpoint.kind == Kind::kIpv4;
    const SocketAddress address =
        endpoint.is_unix() ? UnixSocket(endpoint.address)
        : endpoint.kind == Kind::kIpv6
            ? Ipv6Socket(endpoint.address.c_str(), endpoint.port)
            : Ipv4Socket(is_address ? endpoint.address.c_str() : "127.0.0.1", endpoint.port);
    BlockingClient client(
        FileDescriptor(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)));
    const int fd = client.socket_.get();
    if (!endpoint.is_unix()) SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    const auto us = std::chrono::ceil<std::chrono::microseconds>(timeout).count();
    const timeval wait{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      ::setsockopt(fd, SOL_SOCKET, option, &wait, sizeof wait);
    if (::connect(fd, address.get(), address.size) == 0) return client;
    return absl::UnavailableError(Error(errno));
  }

  // Unavailable if the peer is gone, DeadlineExceeded if sending takes too long.
  absl::Status Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) return Failure(errno);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }
  // Returns the next bytes, at least one; empty at the end of the stream.
  absl::StatusOr<std::string> ReadSome() {
    std::array<char, 16 * 1024> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) return Failure(errno);
    return std::string(buffer.data(), static_cast<size_t>(count));
  }
  // Reads to the end of the stream, at most `bytes_max` bytes.
  absl::StatusOr<std::string> ReadToEnd(size_t bytes_max) {
    std::string all;
    while (all.size() <= bytes_max) {
      HEADGATE_ASSIGN_OR_RETURN(const std::string some, ReadSome());
      if (some.empty()) return all;
      all += some;
    }
    return absl::ResourceExhaustedError("the answer is too long");
  }
  // Shuts down the sending side; responses can still be read.
  void FinishSending() { ::shutdown(socket_.get(), SHUT_WR); }

  int fd() const { return socket_.get(); }

 private:
  explicit BlockingClient(FileDescriptor socket) : socket_(std::move(socket)) {}
  static std::string Error(int error) { return std::generic_category().message(error); }
  static absl::Status Failure(int error) {
    if (error == EAGAIN) return absl::DeadlineExceededError("no answer in time");
    return absl::UnavailableError(Error(error));
  }

  FileDescriptor socket_;
};

}  // namespace headgate::net
