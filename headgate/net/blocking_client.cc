#include "headgate/net/blocking_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/net/listen.h"

namespace headgate::net {
namespace {

bool Again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

absl::StatusOr<BlockingClient> BlockingClient::Connect(const Endpoint& endpoint,
                                                       base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(FileDescriptor socket, ConnectTo(endpoint, timeout));
  return BlockingClient(std::move(socket), endpoint, timeout);
}

BlockingClient::BlockingClient(FileDescriptor socket, const Endpoint& endpoint,
                               base::Duration timeout)
    : socket_(std::move(socket)), name_(endpoint.ToString()), timeout_(timeout) {}

absl::Status BlockingClient::WaitFor(short events) {
  pollfd ready{.fd = socket_.get(), .events = events, .revents = 0};
  const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(timeout_).count();
  const int count = ::poll(&ready, 1, static_cast<int>(timeout_ms));
  if (count > 0 || (count < 0 && errno == EINTR)) return absl::OkStatus();
  return absl::DeadlineExceededError(
      fmt::format("{}: no answer in {} ms; is it up?", name_, timeout_ms));
}

absl::Status BlockingClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (!Again(errno)) {
      return absl::UnavailableError(
          fmt::format("{}: {}", name_, std::generic_category().message(errno)));
    } else {
      HEADGATE_RETURN_IF_ERROR(WaitFor(POLLOUT));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BlockingClient::ReadSome() {
  std::array<char, 16 * 1024> buffer;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count >= 0) return std::string(buffer.data(), static_cast<size_t>(count));
    if (!Again(errno))
      return absl::UnavailableError(
          fmt::format("{}: {}", name_, std::generic_category().message(errno)));
    HEADGATE_RETURN_IF_ERROR(WaitFor(POLLIN));
  }
}

absl::StatusOr<std::string> BlockingClient::ReadToEnd(size_t bytes_max) {
  std::string all;
  while (all.size() <= bytes_max) {
    HEADGATE_ASSIGN_OR_RETURN(const std::string some, ReadSome());
    if (some.empty()) return all;
    all += some;
  }
  return absl::ResourceExhaustedError(
      fmt::format("{}: the answer is longer than {} bytes", name_, bytes_max));
}

void BlockingClient::FinishSending() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace headgate::net
