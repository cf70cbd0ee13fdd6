#include "headgate/app/runtime/net_metrics.h"

namespace headgate::app {

void CollectConnections(const net::Counters& counters, observe::Sink& sink) {
  using observe::Metric;
  sink.Set(Metric::kConnections, {}, counters.connections_open);
  sink.Set(Metric::kConnectionsAccepted, {}, counters.connections_accepted);
  sink.Set(Metric::kConnectionsRefused, {"total_limit"}, counters.refused_total_limit);
  sink.Set(Metric::kConnectionsRefused, {"address_limit"}, counters.refused_address_limit);
  sink.Set(Metric::kConnectionsRefused, {"admin_limit"}, counters.refused_reserved_limit);
  sink.Set(Metric::kConnectionsRefused, {"no_files"}, counters.refused_no_files);
  sink.Set(Metric::kConnectionsRefused, {"proxy_header"}, counters.refused_proxy_header);
  sink.Set(Metric::kConnectionsRefused, {"protocol"}, counters.refused_protocol);
  sink.Set(Metric::kAcceptErrors, {}, counters.accept_errors);
  sink.Set(Metric::kConnectionsClosed, {"protocol_error"}, counters.protocol_errors);
  sink.Set(Metric::kConnectionsClosed, {"tls_handshake"}, counters.failed_handshakes);
  sink.Set(Metric::kConnectionsClosed, {"request_timeout"}, counters.request_timeouts);
  sink.Set(Metric::kConnectionsClosed, {"idle_timeout"}, counters.idle_timeouts);
  sink.Set(Metric::kConnectionsClosed, {"write_timeout"}, counters.write_timeouts);
  sink.Set(Metric::kConnectionsClosed, {"buffer_overflow"}, counters.buffer_overflows);
  sink.Set(Metric::kConnectionsClosed, {"buffer_budget"}, counters.buffers_shed);
  sink.Set(Metric::kConnectionsClosed, {"drain_cutoff"}, counters.drain_cutoffs);
  sink.Set(Metric::kBufferBytes, {}, counters.buffer_bytes);
  sink.Set(Metric::kReceivedBytes, {}, counters.bytes_read);
  sink.Set(Metric::kSentBytes, {}, counters.bytes_written);
}

}  // namespace headgate::app
