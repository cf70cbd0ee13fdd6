#include "headgate/net/blocking_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/base/clock.h"
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

absl::StatusOr<BlockingClient> BlockingClient::ConnectForOneExchange(const Endpoint& endpoint,
                                                                     base::Duration timeout) {
  const base::BootTime deadline = base::SystemClock().BootNow() + timeout;
  HEADGATE_ASSIGN_OR_RETURN(BlockingClient client, Connect(endpoint, timeout));
  client.deadline_ = deadline;
  return client;
}

BlockingClient::BlockingClient(FileDescriptor socket, const Endpoint& endpoint,
                               base::Duration timeout)
    : socket_(std::move(socket)), name_(endpoint.ToString()), timeout_(timeout) {}

base::Duration BlockingClient::TimeLeft() const {
  return deadline_ ? *deadline_ - base::SystemClock().BootNow() : timeout_;
}

absl::Status BlockingClient::WaitFor(short events) {
  const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(TimeLeft()).count();
  pollfd ready{.fd = socket_.get(), .events = events, .revents = 0};
  const int count = left_ms <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left_ms));
  if (count > 0 || (count < 0 && errno == EINTR)) return absl::OkStatus();
  return TimeIsUp();
}

absl::Status BlockingClient::TimeIsUp() const {
  return absl::DeadlineExceededError(
      fmt::format("{}: no answer in {} ms; is it up?", name_,
                  std::chrono::ceil<std::chrono::milliseconds>(timeout_).count()));
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
    // A server that never stops sending never makes the client wait.
    if (count > 0 && deadline_ && TimeLeft() <= base::Duration(0)) return TimeIsUp();
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
