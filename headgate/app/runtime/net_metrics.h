// Reports the counters of connections and of HTTP/2 as metrics.
#pragma once

#include <span>

#include "headgate/http/http2/flood_guard.h"
#include "headgate/net/counters.h"
#include "headgate/observe/metrics.h"

namespace headgate::app {

void CollectConnections(const net::Counters& counters, observe::Sink& sink);
// Reports the sums of all loops.
void CollectHttp2(std::span<const http::http2::Counters* const> loops, observe::Sink& sink);

}  // namespace headgate::app
