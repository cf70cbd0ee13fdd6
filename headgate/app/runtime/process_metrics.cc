#include "headgate/app/runtime/process_metrics.h"

#include "headgate/app/settings/version.h"

namespace headgate::app {

void CollectProcess(const ProcessFigures& figures, observe::Sink& sink) {
  using observe::Metric;
  sink.Set(Metric::kLogLinesDropped, {}, figures.log_lines_dropped);
  sink.Set(Metric::kClockAhead, {}, figures.clock_ahead);
  sink.Set(Metric::kUptime, {}, figures.uptime);
  sink.Set(Metric::kBuildInfo, {kVersion}, uint64_t{1});
}

}  // namespace headgate::app
