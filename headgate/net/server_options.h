// The limits of a server. Every wait and every buffer is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/time.h"

namespace headgate::net {

struct ServerOptions {
  // Event loops, with one thread each. Raise it towards the number of cores.
  uint32_t threads = 1;
  // Open connections in total. Raise it together with the limit on open files (`ulimit -n`).
  uint32_t connections_max = 10'000;
  // Open connections per address; all Unix sockets count as one address. 0 means a quarter of
  // connections_max, so that one address leaves room for others. Raise it if all clients connect
  // through one proxy.
  uint32_t connections_per_address_max = 0;
  // Refused connections that still wait for the reason of the refusal, in total. At this number,
  // the one that has waited longest is closed.
  uint32_t refusals_max = 64;
  // How long a refused connection may take to show which protocol it speaks.
  base::Duration refusal_timeout = std::chrono::seconds(1);
  // How long a trusted proxy may take to send the PROXY header, and how many connections may wait
  // for theirs, in total. At this number, the one that has waited longest is closed.
  base::Duration proxy_header_timeout = std::chrono::seconds(3);
  uint32_t proxy_headers_awaited_max = 1024;
  // The time from the first byte of a request to its last. Raise it for slow links.
  base::Duration request_timeout = std::chrono::seconds(10);
  // The time without a request in progress. Raise it if clients keep pools of idle connections.
  base::Duration idle_timeout = std::chrono::minutes(10);
  // The time in which the peer takes no byte of a waiting reply. Raise it for slow links.
  base::Duration write_timeout = std::chrono::seconds(10);
  // How long input is still read and discarded after the last reply, so that the peer receives that
  // reply before the connection is closed.
  base::Duration linger_timeout = std::chrono::seconds(2);
  // The replies to the input of one read. A connection that produces more is closed. Raise it for
  // larger replies.
  size_t output_bytes_max = size_t{16} << 20;
  // The part of an incomplete request that is kept. Raise it only together with the bounds of the
  // fronts.
  size_t input_bytes_max = size_t{4} << 20;
  // Bytes in the buffers of all connections together: incomplete requests and unread replies.
  // Beyond this budget, the largest and slowest connections are closed. Raise it with the memory
  // that the process may use.
  size_t buffer_bytes_max = size_t{256} << 20;
  // How often deadlines are checked; a timeout is late by at most this.
  base::Duration tick = std::chrono::milliseconds(250);
  // The system's queue of connections that are not accepted yet, per loop.
  int backlog = 1024;

  // One sentence per problem; empty if there is none.
  std::vector<std::string> Validate() const;
};

}  // namespace headgate::net
