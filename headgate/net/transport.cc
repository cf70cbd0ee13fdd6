#include "headgate/net/transport.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/net/tls_transport.h"

namespace headgate::net {
namespace {

class PlainTransport final : public Transport {
 public:
  PlainTransport(EventLoop& loop, FileDescriptor socket, Owner& owner)
      : Transport(loop, std::move(socket), owner) {}

  Io Handshake() override { return {}; }

  Io Read(std::span<char> buffer) override {
    const ssize_t count = Receive(buffer);
    if (count == 0) return {.state = State::kEnd};
    return Result(count);
  }

  Io Write(std::string_view bytes) override {
    return Result(::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  void FinishWriting() override { ::shutdown(fd(), SHUT_WR); }

  std::string error() const override { return std::generic_category().message(error_); }

 private:
  Io Result(ssize_t count) {
    if (count >= 0) return {.bytes = static_cast<size_t>(count)};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      return {.state = State::kWouldBlock};
    error_ = errno;
    return {.state = State::kFailed};
  }

  int error_ = 0;
};

bool IsUnixSocket(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

}  // namespace

void Transport::ResetAtEnd() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

std::unique_ptr<Transport> Transport::Make(EventLoop& loop, FileDescriptor socket, Owner& owner,
                                           std::shared_ptr<const TlsContext> tls,
                                           const std::string& server_name) {
  if (tls == nullptr) return std::make_unique<PlainTransport>(loop, std::move(socket), owner);
  return std::make_unique<TlsTransport>(loop, std::move(socket), owner, std::move(tls),
                                        server_name);
}

Transport::Transport(EventLoop& loop, FileDescriptor socket, Owner& owner)
    : poller_(loop.sockets()),
      owner_(owner),
      socket_(std::move(socket)),
      may_stop_short_(IsUnixSocket(socket_.get())) {
  if (poller_.Add(fd(), *this)) return;
  // The owner reads the end.
  ::shutdown(fd(), SHUT_RDWR);
}

Transport::~Transport() {
  poller_.Remove(fd(), *this);
  if (gone_ != nullptr) *gone_ = true;
}

// If less than the buffer was received, then the socket was empty, and an event will announce later
// bytes. (A Unix socket also stops where a message with descriptors begins or ends.) But if the end
// of the input came together with the input, or bytes are behind an error, no further event
// announces them.
ssize_t Transport::Receive(std::span<char> buffer, int flags) {
  const ssize_t count = ::recv(fd(), buffer.data(), buffer.size(), flags);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) has_input_ = input_ended_ = false;
  } else if (count < std::ssize(buffer) && !may_stop_short_) {
    has_input_ = input_ended_;
  }
  return count;
}

void Transport::AwaitRead() {
  awaits_read_ = true;
  Await(read_needs());
}

void Transport::AwaitWrite() {
  awaits_write_ = true;
  Await(write_needs());
}

void Transport::AwaitEnd() {
  awaits_end_ = true;
  if (input_ended_) poller_.CallAgain(*this);
}

void Transport::Await(Ready ready) {
  if (ready == Ready::kToWrite) return poller_.WhenWritable(fd(), *this);
  if (has_input_ || has_received()) poller_.CallAgain(*this);
}

void Transport::OnEvents(uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) input_ended_ = true;
  const bool readable = (events & EPOLLIN) != 0 || input_ended_;
  has_input_ = has_input_ || readable;
  if (readable && !OnReady(Ready::kToRead)) return;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) OnReady(Ready::kToWrite);
}

// A read and a write may wait for the same readiness.
bool Transport::OnReady(Ready ready) {
  bool gone = false;
  gone_ = &gone;
  const bool reads = awaits_read_ && read_needs() == ready;
  if (reads || (awaits_end_ && input_ended_)) {
    awaits_read_ = awaits_end_ = false;
    owner_.OnReadable();
  }
  if (!gone && awaits_write_ && write_needs() == ready) {
    awaits_write_ = false;
    owner_.OnWritable();
  }
  if (!gone) gone_ = nullptr;
  return !gone;
}

}  // namespace headgate::net
