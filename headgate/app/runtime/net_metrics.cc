#include "headgate/app/runtime/net_metrics.h"

#include <array>
#include <string_view>

namespace headgate::app {
namespace {

// In the order of http::http2::Flood.
constexpr std::array<std::string_view, http::http2::kFloods> kFloods = {
    "resets",         "provoked",       "pings",      "settings",      "priorities",
    "unknown_frames", "window_updates", "empty_data", "continuations", "fields"};

}  // namespace

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

void CollectHttp2(std::span<const http::http2::Counters* const> loops, observe::Sink& sink) {
  using observe::Metric;
  std::array<uint64_t, http::http2::kFloods> floods{};
  uint64_t malformed = 0;
  uint64_t refused = 0;
  uint64_t slow = 0;
  for (const http::http2::Counters* counters : loops) {
    for (size_t i = 0; i < floods.size(); ++i) floods[i] += counters->floods[i].value();
    malformed += counters->malformed_heads.value();
    refused += counters->refused_heads.value();
    slow += counters->timeouts.value();
  }
  for (size_t i = 0; i < floods.size(); ++i)
    sink.Set(Metric::kHttp2Floods, {kFloods[i]}, floods[i]);
  sink.Set(Metric::kHttp2Refusals, {"malformed"}, malformed);
  sink.Set(Metric::kHttp2Refusals, {"refused"}, refused);
  sink.Set(Metric::kHttp2Refusals, {"slow"}, slow);
}

}  // namespace headgate::app
