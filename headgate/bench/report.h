// The result of a run of load: as text, as JSON, and as a picture of the latencies.
#pragma once

#include <optional>
#include <string>

#include "headgate/bench/latencies.h"
#include "headgate/bench/load.h"

namespace headgate::bench {

struct Report {
  std::string server;
  bool http = false;
  uint64_t rate_asked = 0;  // 0: closed loop
  uint32_t connections = 0;
  uint32_t pipeline = 1;
  base::Duration duration{0};
  LoadCounts counts{};
  Latencies latencies{};

  // Answers per second.
  double rate() const;
};

std::string AsText(const Report& report);
std::string AsJson(const Report& report);
// SVG: the latency (logarithmic) by percentile, up to 99.999.
std::string AsPlot(const Report& report);

// "812us", "3.41ms", "1.20s".
std::string ShowLatency(base::Duration latency);

}  // namespace headgate::bench
