// The server without its protocols: event loops that accept connections and feed their sessions.
//
// One thread per loop; a TCP connection stays on the loop whose socket accepted it. Per read: one
// look at the clock, one OnBytes, one write. Reading stops while a reply waits to be taken, so that
// a slow reader holds at most one read's replies. Unix sockets are accepted on the first loop and
// handed round.
#pragma once

#include <functional>
#include <memory>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/net/counters.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/server_options.h"
#include "headgate/net/session.h"
#include "headgate/net/spare_files.h"
#include "headgate/net/tls_context.h"

namespace headgate::net {

struct ListenOptions {
  // Not 0: connections of this address do not count against connections_max; it has this many
  // places of its own, from which others cannot shut it out, and may use spare descriptors.
  uint32_t reserved_connections_max = 0;
  // Not null: connections of this address speak TLS.
  std::shared_ptr<const TlsContext> tls{};
};

class Server {
 public:
  // `options` must be valid; `clock` and `spare_files` must outlive the server. Throws
  // boost::system::system_error if the system refuses what an event loop needs.
  Server(const ServerOptions& options, const base::DisciplinedClock& clock,
         SpareFiles& spare_files);
  // Closes everything at once.
  ~Server();

  // Binds an address and listens; connections wait until Start. `sessions` is called once per loop,
  // here. Returns the address with the port that the system chose, where 0 was asked for. Before
  // Start only.
  absl::StatusOr<Endpoint> Listen(const Endpoint& endpoint,
                                  const std::function<SessionChooser(uint32_t loop)>& sessions,
                                  const ListenOptions& listen_options = {});

  // For other work on one of the loops. Objects that live there are made before Start and destroyed
  // after Stop.
  EventLoop& loop(uint32_t index);

  void Start();

  // Accepts no more connections, lets requests that have begun finish, closes connections as they
  // come to rest. True where all were done within `timeout`; the rest is cut off then. Call once,
  // from any thread but a loop's.
  bool Drain(base::Duration timeout);

  // Ends all loops' threads; connections that are open stay so, and are closed when the server
  // goes. From any thread but a loop's.
  void Stop();

  // The sum over all loops. From any thread.
  Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headgate::net
