// The parts that decide and count: clock, store, limiter, metrics, snapshot. No sockets.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "headgate/app/settings.h"
#include "headgate/app/snapshot_file.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/limiter.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/store/memory.h"

namespace headgate::app {

class Engine {
 public:
  // `workers`: threads that decide. Restores the snapshot. `clock`, `log` and
  // `spare_files` must outlive the engine.
  Engine(const Settings& settings, uint32_t workers, const base::Clock& system_clock,
         observe::Log& log, net::SpareFiles& spare_files);

  ~Engine();

  // Every second or so, from one thread: draws the clock to the wall, forgets what has expired, and
  // has the snapshot written when it is due, by a thread of its own: a large one takes seconds.
  void Tick();
  // At the end, when nobody decides any more.
  bool WriteLastSnapshot();

  const base::DisciplinedClock& clock() const { return clock_; }
  store::MemoryStore& store() { return store_; }
  limiter::Limiter& limiter() { return limiter_; }
  observe::Metrics& metrics() { return metrics_; }

 private:
  void WriteSnapshotSoon();
  void Collect(observe::Sink& sink);

  const base::Clock& system_clock_;
  observe::Log& log_;
  base::DisciplinedClock clock_;
  const base::BootTime started_at_;
  store::MemoryStore store_;
  observe::Metrics metrics_;
  SnapshotFile snapshot_;
  limiter::Limiter limiter_;
  const base::Duration snapshot_interval_;
  std::atomic<int64_t> snapshot_due_ns_;
  std::atomic<bool> snapshot_under_way_{false};
  std::thread snapshot_thread_;
  base::Instant sweep_due_;
  std::atomic<int64_t> clock_ahead_ns_{0};
};

}  // namespace headgate::app
