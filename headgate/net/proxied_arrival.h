// A connection that a trusted proxy passes on, until the PROXY header has named its client. Then
// the loop adopts it as the client's connection. Internal to net.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>

#include "headgate/base/time.h"
#include "headgate/net/acceptor.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/proxy_header.h"
#include "headgate/net/session.h"

namespace headgate::net {

class Loop;
struct Listener;

// The loop owns it; a wait for bytes that is under way shares the ownership.
class ProxiedArrival : public std::enable_shared_from_this<ProxiedArrival> {
 public:
  // `proxy` is the other end of the socket. `listener` outlives the arrival.
  ProxiedArrival(Loop& loop, FileDescriptor socket, Peer proxy, const Listener& listener,
                 base::Instant deadline);
  ProxiedArrival(const ProxiedArrival&) = delete;

  // Reads what has arrived of the header, but nothing behind it. When the header is complete, or
  // cannot become valid, the arrival ends.
  void Read();
  // Closes the connection. The loop has forgotten the arrival.
  void Close();

  base::Instant deadline() const { return deadline_; }

 private:
  void Await();
  void Finish();
  // The client as the sessions see it.
  Peer Client() const;

  Loop& loop_;
  boost::asio::posix::stream_descriptor socket_;
  const Peer proxy_;
  const Listener& listener_;
  const base::Instant deadline_;
  ProxyHeaderReader reader_;
};

}  // namespace headgate::net
