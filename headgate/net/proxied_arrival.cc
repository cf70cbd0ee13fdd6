#include "headgate/net/proxied_arrival.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {

ProxiedArrival::ProxiedArrival(Loop& loop, FileDescriptor socket, Peer proxy,
                               const Listener& listener, base::Instant deadline)
    : loop_(loop),
      socket_(loop.io(), socket.release()),
      proxy_(std::move(proxy)),
      listener_(listener),
      deadline_(deadline) {}

// Looks at the bytes first and takes those of the header: the rest is for the session, or for TLS.
void ProxiedArrival::Read() {
  using State = ProxyHeaderReader::State;
  std::array<char, 512> bytes;
  while (reader_.state() == State::kMore) {
    const int socket = socket_.native_handle();
    const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Await();
    if (count <= 0) break;
    const size_t taken = reader_.Take({bytes.data(), static_cast<size_t>(count)});
    if (taken > 0 && ::recv(socket, bytes.data(), taken, 0) != static_cast<ssize_t>(taken)) break;
  }
  Finish();
}

void ProxiedArrival::Await() {
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && self->socket_.is_open()) self->Read();
                     });
}

void ProxiedArrival::Finish() {
  const std::shared_ptr<ProxiedArrival> self = loop_.Forget(*this);
  if (reader_.state() == ProxyHeaderReader::State::kDone)
    return loop_.Adopt(FileDescriptor(socket_.release()), Client(), listener_);
  // A proxy that connects and leaves at once checks whether the server is alive.
  if (reader_.state() == ProxyHeaderReader::State::kInvalid)
    loop_.counters().refused_proxy_header.Add();
  Close();
}

void ProxiedArrival::Close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  (void)loop_.shared().spare_files.Refill();
}

Peer ProxiedArrival::Client() const {
  const ProxyHeader& header = reader_.header();
  if (header.client == ProxyHeader::Client::kProxyItself) return proxy_;
  if (header.client == ProxyHeader::Client::kNamed) return PeerBehindProxy(header.ip, header.port);
  return {.loopback = false, .ip = proxy_.ip, .address = proxy_.address};
}

}  // namespace headgate::net
