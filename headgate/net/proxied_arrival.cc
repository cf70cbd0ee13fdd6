#include "headgate/net/proxied_arrival.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

std::optional<ConnectionLimits::Slot> Counted(ConnectionLimits& arriving, const Peer& proxy) {
  ConnectionLimits::Refusal refusal{};
  return arriving.Enter(KeyOf(proxy), refusal);
}

}  // namespace

ProxiedArrival::ProxiedArrival(Loop& loop, FileDescriptor socket, Peer proxy,
                               const Listener& listener, base::Instant deadline)
    : loop_(loop),
      socket_(std::move(socket)),
      proxy_(std::move(proxy)),
      listener_(listener),
      deadline_(deadline),
      counted_(Counted(loop.shared().arriving, proxy_)) {
  // If the socket cannot be registered for lack of room, the arrival ends at its deadline.
  (void)loop_.events().sockets().Add(socket_.get(), *this);
}

ProxiedArrival::~ProxiedArrival() {
  loop_.events().sockets().Remove(socket_.get(), *this);
  if (!socket_) return;
  socket_ = FileDescriptor();
  (void)loop_.shared().spare_files.Refill();
}

void ProxiedArrival::OnEvents(uint32_t /*events*/) { Read(); }

// Peeks at the bytes first, and takes only the bytes of the header: the rest is for the session, or
// for TLS.
void ProxiedArrival::Read() {
  using State = ProxyHeaderReader::State;
  std::array<char, 512> bytes;
  while (reader_.state() == State::kMore) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_PEEK);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count <= 0) break;
    const size_t taken = reader_.Take({bytes.data(), static_cast<size_t>(count)});
    if (taken > 0 && ::recv(socket_.get(), bytes.data(), taken, 0) != static_cast<ssize_t>(taken))
      break;
  }
  Finish();
}

void ProxiedArrival::Finish() {
  const std::unique_ptr<ProxiedArrival> self = loop_.Forget(*this);
  loop_.events().sockets().Remove(socket_.get(), *this);
  if (reader_.state() == ProxyHeaderReader::State::kDone)
    return loop_.Adopt(std::move(socket_), Client(), listener_);
  // A proxy that connects and leaves at once checks whether the server is alive.
  if (reader_.state() == ProxyHeaderReader::State::kInvalid)
    loop_.counters().refused_proxy_header.Add();
}

Peer ProxiedArrival::Client() const {
  const ProxyHeader& header = reader_.header();
  if (header.client == ProxyHeader::Client::kProxyItself) return proxy_;
  if (header.client == ProxyHeader::Client::kNamed) return PeerBehindProxy(header.ip, header.port);
  return {.loopback = false, .ip = proxy_.ip, .address = proxy_.address};
}

}  // namespace headgate::net
