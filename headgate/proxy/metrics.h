// The metrics of `headgate sidecar`.
#pragma once

#include <span>

#include "headgate/observe/metrics.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/share/client_series.h"
#include "headgate/share/pool_snapshot.h"

namespace headgate::proxy {

// The clients with series of their own: those with the largest demands. The others are summed under
// an empty name.
inline constexpr size_t kClientSeriesMax = 100;

// Reports the exchanges and upstreams of all loops.
void CollectProxy(std::span<const ProxyCounters* const> loops, observe::Sink& sink);
// Reports the pool. Keeps only clients with series of their own in `snapshot`.
void CollectShare(share::PoolSnapshot& snapshot, share::ClientSeries& series, observe::Sink& sink);

}  // namespace headgate::proxy
