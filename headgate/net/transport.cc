#include "headgate/net/transport.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/net/tls_transport.h"

namespace headgate::net {
namespace {

using boost::asio::posix::stream_descriptor;

class PlainTransport final : public Transport {
 public:
  PlainTransport(EventLoop& loop, FileDescriptor socket, Owner& owner)
      : Transport(loop, std::move(socket), owner) {}

  Io Handshake() override { return {}; }

  Io Read(std::span<char> buffer) override {
    const ssize_t count = ::recv(fd(), buffer.data(), buffer.size(), 0);
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

}  // namespace

// The descriptor and the pending waits on it. Pending waits share ownership, so it may outlive its
// transport.
struct Transport::Watch : boost::intrusive_ref_counter<Watch, boost::thread_unsafe_counter> {
  Watch(EventLoop& loop, FileDescriptor socket, Transport& owner)
      : descriptor(loop.io(), socket.release()), transport(&owner) {}

  void Arm(Ready ready) {
    bool& armed = ready == Ready::kToRead ? read_armed : write_armed;
    if (std::exchange(armed, true)) return;
    descriptor.async_wait(
        ready == Ready::kToRead ? stream_descriptor::wait_read : stream_descriptor::wait_write,
        [self = boost::intrusive_ptr(this), ready](const boost::system::error_code&) {
          (ready == Ready::kToRead ? self->read_armed : self->write_armed) = false;
          if (self->transport != nullptr) self->transport->OnReady(ready);
        });
  }

  void Post() {
    boost::asio::post(descriptor.get_executor(), [self = boost::intrusive_ptr(this)] {
      if (self->transport != nullptr) self->transport->OnReady(self->transport->read_needs());
    });
  }

  stream_descriptor descriptor;
  Transport* transport;  // null once the transport is destroyed
  bool read_armed = false;
  bool write_armed = false;
};

std::unique_ptr<Transport> Transport::Make(EventLoop& loop, FileDescriptor socket, Owner& owner,
                                           std::shared_ptr<const TlsContext> tls,
                                           const std::string& server_name) {
  if (tls == nullptr) return std::make_unique<PlainTransport>(loop, std::move(socket), owner);
  return std::make_unique<TlsTransport>(loop, std::move(socket), owner, std::move(tls),
                                        server_name);
}

Transport::Transport(EventLoop& loop, FileDescriptor socket, Owner& owner)
    : owner_(owner), fd_(socket.get()), watch_(new Watch(loop, std::move(socket), *this)) {}

Transport::~Transport() {
  watch_->transport = nullptr;
  boost::system::error_code ignored;
  watch_->descriptor.close(ignored);
}

bool Transport::PeerHasLeft() const {
  char byte;
  const ssize_t count = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Transport::AwaitRead() {
  const bool already = std::exchange(awaits_read_, true);
  if (!has_received()) return watch_->Arm(read_needs());
  if (!already) watch_->Post();
}

void Transport::AwaitWrite() {
  awaits_write_ = true;
  watch_->Arm(write_needs());
}

// A read and a write may wait for the same readiness.
void Transport::OnReady(Ready ready) {
  const boost::intrusive_ptr<Watch> watch = watch_;
  if (awaits_read_ && read_needs() == ready) {
    awaits_read_ = false;
    owner_.OnReadable();
  }
  if (watch->transport == nullptr || !awaits_write_ || write_needs() != ready) return;
  awaits_write_ = false;
  owner_.OnWritable();
}

}  // namespace headgate::net
