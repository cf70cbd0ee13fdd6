// Reports the connections' counters as metrics.
#pragma once

#include "headgate/net/counters.h"
#include "headgate/observe/metrics.h"

namespace headgate::app {

void CollectConnections(const net::Counters& counters, observe::Sink& sink);

}  // namespace headgate::app
