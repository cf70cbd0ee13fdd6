#include "headgate/net/counters.h"

namespace headgate::net {

Counters& Counters::operator+=(const Counters& other) {
  connections_open += other.connections_open;
  connections_accepted += other.connections_accepted;
  refused_total_limit += other.refused_total_limit;
  refused_address_limit += other.refused_address_limit;
  refused_reserved_limit += other.refused_reserved_limit;
  refused_no_files += other.refused_no_files;
  refused_proxy_header += other.refused_proxy_header;
  accept_errors += other.accept_errors;
  refused_protocol += other.refused_protocol;
  protocol_errors += other.protocol_errors;
  failed_handshakes += other.failed_handshakes;
  request_timeouts += other.request_timeouts;
  idle_timeouts += other.idle_timeouts;
  write_timeouts += other.write_timeouts;
  buffer_overflows += other.buffer_overflows;
  buffers_shed += other.buffers_shed;
  buffer_bytes += other.buffer_bytes;
  drain_cutoffs += other.drain_cutoffs;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

Counters LoopCounters::Read() const {
  return {.connections_open = connections_open.value(),
          .connections_accepted = connections_accepted.value(),
          .refused_total_limit = refused_total_limit.value(),
          .refused_address_limit = refused_address_limit.value(),
          .refused_reserved_limit = refused_reserved_limit.value(),
          .refused_no_files = refused_no_files.value(),
          .refused_proxy_header = refused_proxy_header.value(),
          .accept_errors = accept_errors.value(),
          .refused_protocol = refused_protocol.value(),
          .protocol_errors = protocol_errors.value(),
          .failed_handshakes = failed_handshakes.value(),
          .request_timeouts = request_timeouts.value(),
          .idle_timeouts = idle_timeouts.value(),
          .write_timeouts = write_timeouts.value(),
          .buffer_overflows = buffer_overflows.value(),
          .buffers_shed = buffers_shed.value(),
          .buffer_bytes = buffer_bytes.value(),
          .drain_cutoffs = drain_cutoffs.value(),
          .bytes_read = bytes_read.value(),
          .bytes_written = bytes_written.value()};
}

}  // namespace headgate::net
