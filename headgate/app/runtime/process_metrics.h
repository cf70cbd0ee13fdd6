// The metrics about the process itself.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/observe/metrics.h"

namespace headgate::app {

struct ProcessFigures {
  uint64_t log_lines_dropped = 0;
  base::Duration clock_ahead{0};
  base::Duration uptime{0};
};

void CollectProcess(const ProcessFigures& figures, observe::Sink& sink);

}  // namespace headgate::app
