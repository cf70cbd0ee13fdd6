// A connection that a trusted proxy passes on, until the PROXY header has named its client. Then
// the loop adopts it as the client's connection. Internal to net.
#pragma once

#include <optional>

#include "headgate/base/time.h"
#include "headgate/net/acceptor.h"
#include "headgate/net/connection_limits.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/proxy_header.h"
#include "headgate/net/session.h"

namespace headgate::net {

class Loop;
struct Listener;

// The loop owns it.
class ProxiedArrival final : private SocketPoller::Socket {
 public:
  // `proxy` is the other end of the socket. `listener` outlives the arrival.
  ProxiedArrival(Loop& loop, FileDescriptor socket, Peer proxy, const Listener& listener,
                 base::Instant deadline);
  ~ProxiedArrival();
  ProxiedArrival(const ProxiedArrival&) = delete;

  // Reads the bytes of the header that have arrived, but nothing behind the header. When the header
  // is complete, or cannot become valid, the loop forgets the arrival, which ends with it.
  void Read();

  base::Instant deadline() const { return deadline_; }

 private:
  void OnEvents(uint32_t events) override;
  void Finish();
  // The client as the sessions see it.
  Peer Client() const;

  Loop& loop_;
  FileDescriptor socket_;
  const Peer proxy_;
  const Listener& listener_;
  const base::Instant deadline_;
  const std::optional<ConnectionLimits::Slot> counted_;
  ProxyHeaderReader reader_;
};

}  // namespace headgate::net
