// Counters of connections. Each loop has its own, without atomic read-modify-write operations;
// readers add them up.
#pragma once

#include <cstdint>

#include "headgate/base/counter.h"

namespace headgate::net {

struct Counters {
  uint64_t connections_open = 0;
  uint64_t connections_accepted = 0;
  // A refused connection is accepted and closed. If the client sends something soon, it is told the
  // reason in its protocol.
  uint64_t refused_total_limit = 0;     // connections_max reached
  uint64_t refused_address_limit = 0;   // connections_per_address_max reached
  uint64_t refused_reserved_limit = 0;  // the reserved places of an address are all taken
  uint64_t refused_no_files = 0;        // no descriptor was left for the connection
  // A trusted proxy sent no valid PROXY header, or none in time.
  uint64_t refused_proxy_header = 0;
  // Failed attempts to accept; the connection stays in the system's queue.
  uint64_t accept_errors = 0;
  uint64_t refused_protocol = 0;   // this address does not serve the client's protocol
  uint64_t protocol_errors = 0;    // closed by a session because of invalid input
  uint64_t failed_handshakes = 0;  // of TLS
  uint64_t request_timeouts = 0;
  uint64_t idle_timeouts = 0;
  uint64_t write_timeouts = 0;
  uint64_t buffer_overflows = 0;  // output_bytes_max or input_bytes_max reached
  // Closed because the buffers of all connections together reached buffer_bytes_max.
  uint64_t buffers_shed = 0;
  uint64_t buffer_bytes = 0;   // held now by connections that hold more than a few KiB
  uint64_t drain_cutoffs = 0;  // closed in the middle of a request because the drain took too long
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;

  Counters& operator+=(const Counters& other);
};

struct alignas(64) LoopCounters {
  base::Counter connections_open, connections_accepted, refused_total_limit, refused_address_limit;
  base::Counter refused_reserved_limit, refused_no_files, accept_errors;
  base::Counter refused_proxy_header, refused_protocol, protocol_errors;
  base::Counter request_timeouts, idle_timeouts, write_timeouts, buffer_overflows, drain_cutoffs;
  base::Counter failed_handshakes, buffers_shed, buffer_bytes;
  base::Counter bytes_read, bytes_written;

  Counters Read() const;
};

}  // namespace headgate::net
