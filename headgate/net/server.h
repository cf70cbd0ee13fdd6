// A server without its protocols: event loops that accept connections and feed their sessions.
//
// One thread per loop; a TCP connection stays on the loop whose socket accepted it. Each read costs
// one clock reading, one OnBytes and one write. Reading stops while a reply waits for the peer, so
// a slow reader holds at most the replies to one read. Unix sockets are accepted on the first loop
// and distributed to the others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/ip_network_set.h"
#include "headgate/base/status.h"
#include "headgate/net/counters.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/server_options.h"
#include "headgate/net/session.h"
#include "headgate/net/spare_files.h"
#include "headgate/net/tls_server.h"

namespace headgate::net {

// The peers whose PROXY header is trusted to name the client of a connection.
struct ProxyTrust {
  base::IpNetworkSet networks{};
  bool unix_sockets = false;

  bool Trusts(const Peer& peer) const {
    return peer.ip ? networks.Contains(*peer.ip) : unix_sockets;
  }
};

struct ListenOptions {
  // If not 0, connections to this address do not count against connections_max. The address has
  // this many places of its own, which clients of other addresses cannot occupy, and may use spare
  // descriptors. One client's address gets at most three quarters of them, rounded up (over TCP),
  // and a connection that has made no request within request_timeout is closed.
  uint32_t reserved_connections_max = 0;
  // Peers whose connections begin with a PROXY header, which names their client. Connections of
  // others begin as usual.
  ProxyTrust proxies{};
  // If not null, connections to this address use TLS. A PROXY header comes before it.
  std::shared_ptr<const TlsServer> tls{};
  // The permissions of a Unix socket's file; absent: as the process's umask has them.
  std::optional<uint32_t> unix_mode{};
};

class Server {
 public:
  // `options` must be valid; `clock` and `spare_files` must outlive the server. Throws
  // std::system_error if the system denies the resources of an event loop.
  Server(const ServerOptions& options, const base::DisciplinedClock& clock,
         SpareFiles& spare_files);
  // Closes everything at once.
  ~Server();

  // Binds an address and listens; connections wait until Start. Calls `sessions` once per loop
  // before it returns. Returns the address with the port that the system chose if port 0 was
  // requested. Call it only before Start.
  absl::StatusOr<Endpoint> Listen(const Endpoint& endpoint,
                                  const std::function<SessionChooser(uint32_t loop)>& sessions,
                                  const ListenOptions& listen_options = {});

  // The same with sockets that listen already on this address: another process has handed them
  // over.
  void Adopt(const Endpoint& endpoint, std::vector<FileDescriptor> sockets,
             const std::function<SessionChooser(uint32_t loop)>& sessions,
             const ListenOptions& listen_options = {});

  // The listening sockets of each address, in the order of Listen and Adopt. Valid until the server
  // drains; another process may get them.
  const std::vector<std::vector<int>>& listening_sockets() const;

  // One of the loops, for other work. Objects that use it must be created before Start and
  // destroyed after Stop.
  EventLoop& loop(uint32_t index);

  void Start();

  // Stops accepting connections, lets requests that have begun finish, and closes connections as
  // they become idle. Returns true if all finished within `timeout`; the rest are then cut off.
  // Calls `begun` when all loops, and their sessions, know. Call it once, from any thread except a
  // loop's.
  bool Drain(base::Duration timeout, const std::function<void()>& begun = {});
  // The same if another process accepts on all sockets: leaves it the connections that wait, and
  // the files of Unix sockets. Idle connections stay until their next request is answered, so that
  // no client finds its connection closed while it sends.
  bool LeaveToSuccessor(base::Duration timeout, const std::function<void()>& begun = {});

  // Ends the threads of all loops. Open connections stay open until the server is destroyed.
  // Callable from any thread except a loop's.
  void Stop();

  // Summed over all loops. Callable from any thread.
  Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headgate::net
