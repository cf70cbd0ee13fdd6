// From an Endpoint to listening sockets.
//
// TCP: one socket per loop, all on one port with SO_REUSEPORT, so that the kernel spreads
// connections and no loop wakes another. The first is bound without it, so that a second server of
// the same user gets "address in use", not half of the connections. Unix: one socket in all; a
// socket file that nobody listens on any more is taken over.
#pragma once

#include <cstdint>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

struct ListeningSockets {
  Endpoint bound;  // as asked for, with the port that the system chose
  // Per loop: its sockets (two for localhost). A Unix socket stands under loop 0 alone.
  std::vector<std::vector<FileDescriptor>> by_loop;
};

// Non-blocking sockets that already listen. Errors name the address and what to do.
absl::StatusOr<ListeningSockets> ListenOn(const Endpoint& endpoint, uint32_t loops, int backlog);

// A connected, non-blocking socket; of the two addresses of localhost the first that answers.
// Unavailable where nobody answers within `timeout`.
absl::StatusOr<FileDescriptor> ConnectTo(const Endpoint& endpoint, base::Duration timeout);

}  // namespace headgate::net
