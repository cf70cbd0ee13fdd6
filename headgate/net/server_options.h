// The limits of a server. Every wait has an end, every buffer a bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/time.h"

namespace headgate::net {

struct ServerOptions {
  // Event loops, one thread each. Raise it towards the number of cores.
  uint32_t threads = 1;
  // Open connections in all. Raise it with the limit on open files (`ulimit -n`).
  uint32_t connections_max = 10'000;
  // Open connections from one address; Unix sockets count as one address. 0: a quarter of
  // connections_max, so that one address leaves room for others. Raise it if all clients come
  // through one proxy.
  uint32_t connections_per_address_max = 0;
  // Connections beyond these limits that wait to be told why they are refused, in all. At this
  // number the one that waits longest makes way.
  uint32_t refusals_max = 64;
  // How long such a connection may take to show which protocol it speaks.
  base::Duration refusal_timeout = std::chrono::seconds(1);
  // From the first byte of a request to its last. Raise it for slow links.
  base::Duration request_timeout = std::chrono::seconds(10);
  // Without a request under way. Raise it where clients keep pools of connections that rest.
  base::Duration idle_timeout = std::chrono::minutes(10);
  // Without one byte of a waiting reply being taken. Raise it for slow links.
  base::Duration write_timeout = std::chrono::seconds(10);
  // How long a closed connection may still send what nobody reads, so that it gets the last reply.
  base::Duration linger_timeout = std::chrono::seconds(2);
  // Replies to what one read brought. A connection that makes more is closed. Raise it for larger
  // answers.
  size_t output_bytes_max = size_t{16} << 20;
  // The beginning of a request that waits for its rest. Raise it only with what the fronts accept.
  size_t input_bytes_max = size_t{4} << 20;
  // Bytes in the buffers of all connections together: unfinished requests and unread answers.
  // Beyond it the largest and slowest connections are refused and closed. Raise it with the memory
  // that the process may use.
  size_t buffer_bytes_max = size_t{256} << 20;
  // How often deadlines are looked at; a deadline is late by at most this.
  base::Duration tick = std::chrono::milliseconds(250);
  // The system's queue of connections not yet accepted, per loop.
  int backlog = 1024;

  // One sentence per thing that is wrong; empty where nothing is.
  std::vector<std::string> Validate() const;
};

}  // namespace headgate::net
