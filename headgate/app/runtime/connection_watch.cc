#include "headgate/app/runtime/connection_watch.h"

#include <string_view>

namespace headgate::app {
namespace {

struct Cause {
  uint64_t net::Counters::*counter;
  std::string_view event;
  std::string_view reason;
  std::string_view effect;
  std::string_view hint;
};

constexpr std::string_view kRefused = "new clients get an error and are closed";

constexpr std::string_view kHintOfLowered = "raise `ulimit -n`, or lower idle_timeout";

constexpr std::array kCauseTable = {
    Cause{&net::Counters::refused_total_limit, "connections.refused", "total_limit", kRefused,
          "raise max_connections, or lower idle_timeout"},
    Cause{&net::Counters::refused_address_limit, "connections.refused", "address_limit",
          "new clients from an address at its limit get an error and are closed",
          "raise max_connections_per_address if clients come through a proxy"},
    Cause{&net::Counters::refused_reserved_limit, "connections.refused", "admin_limit",
          "new clients of the admin address get an error and are closed",
          "raise max_admin_connections"},
    Cause{&net::Counters::refused_no_files, "connections.refused", "no_files", kRefused,
          "raise `ulimit -n`, or lower max_connections"},
    Cause{&net::Counters::refused_proxy_header, "connections.refused", "proxy_header",
          "connections of a trusted proxy without a valid PROXY header are closed",
          "let the proxy send the header, or remove proxy_from from the address"},
    Cause{&net::Counters::buffers_shed, "buffers.shed", "buffer_budget",
          "the connections with the largest and slowest requests get an error and are closed",
          "raise max_buffer_bytes, or lower request_timeout and max_body_bytes"},
};

}  // namespace

void ConnectionWatch::Step(const net::Counters& counters, base::Instant now) {
  static_assert(kCauseTable.size() == kCauses);
  for (size_t i = 0; i < kCauses; ++i) {
    const Cause& cause = kCauseTable[i];
    Seen& seen = seen_[i];
    const uint64_t count = counters.*cause.counter;
    if (count == seen.logged || now < seen.quiet_until) continue;
    const bool of_files = lowered_ && cause.counter == &net::Counters::refused_total_limit;
    log_.Warning(cause.event, {{"reason", cause.reason},
                               {"count", count - seen.logged},
                               {"effect", cause.effect},
                               {"hint", of_files ? kHintOfLowered : cause.hint}});
    seen = {.logged = count, .quiet_until = now + kQuiet};
  }
}

}  // namespace headgate::app
