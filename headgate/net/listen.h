// Opens listening sockets for an Endpoint.
//
// TCP: one socket per loop, all on one port with SO_REUSEPORT, so the kernel distributes
// connections and no loop wakes another. The first socket is bound without SO_REUSEPORT, so that a
// second server of the same user gets "address in use" instead of half of the connections. Unix: a
// single socket; a socket file without a listener is replaced.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

struct ListeningSockets {
  Endpoint bound;  // as requested, with the port that the system chose
  // The sockets of each loop (two for localhost). A Unix socket belongs to loop 0 only.
  std::vector<std::vector<FileDescriptor>> by_loop;
};

// Returns non-blocking sockets that already listen. Errors name the address and suggest what to do.
// `unix_mode`: the permissions of a Unix socket's file; absent: as the process's umask has them.
absl::StatusOr<ListeningSockets> ListenOn(const Endpoint& endpoint, uint32_t loops, int backlog,
                                          std::optional<uint32_t> unix_mode = std::nullopt);

}  // namespace headgate::net
