// The parts that decide and count: clock, store, limiter, metrics, snapshot. No sockets.
#pragma once

#include <atomic>
#include <string>

#include "headgate/app/settings/settings.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/limiter.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/observe/top_keys.h"
#include "headgate/rule/editor.h"
#include "headgate/snapshot/periodic_snapshot.h"
#include "headgate/snapshot/snapshot_file.h"
#include "headgate/store/memory.h"

namespace headgate::app {

class Engine {
 public:
  // Restores the snapshot. `workers` is the number of threads that decide. `system_clock`, `log`
  // and `spare_files` must outlive the engine.
  Engine(const Settings& settings, uint32_t workers, const base::Clock& system_clock,
         observe::Log& log, net::SpareFiles& spare_files);

  // Adjusts the clock towards the wall clock, sweeps expired buckets, brings the lists of top keys
  // up to date, and begins to write the snapshot when it is due. Call it about every second, from
  // one thread.
  void Tick();
  // Call it at the end, after the last decision.
  bool WriteLastSnapshot() { return snapshots_.WriteLast(); }

  // Begins or ends passthrough (limiter.h), and logs it if that changes something. `author` is
  // empty at start. From any thread.
  void SetPassthrough(bool on, const rule::Author& author);
  // Calls `tell` after each change of it, on the thread that changes it. Set it before the loops
  // run.
  void TellPassthrough(std::function<void()> tell) { tell_passthrough_ = std::move(tell); }

  const base::DisciplinedClock& clock() const { return clock_; }
  store::MemoryStore& store() { return store_; }
  limiter::Limiter& limiter() { return limiter_; }
  observe::Metrics& metrics() { return metrics_; }
  observe::TopKeys& top_keys() { return top_keys_; }

 private:
  void Collect(observe::Sink& sink);

  const base::Clock& system_clock_;
  observe::Log& log_;
  base::DisciplinedClock clock_;
  const base::BootTime started_at_;
  store::MemoryStore store_;
  observe::Metrics metrics_;
  observe::TopKeys top_keys_;
  snapshot::SnapshotFile snapshot_;
  limiter::Limiter limiter_;
  snapshot::PeriodicSnapshot snapshots_;
  base::Instant sweep_due_;
  std::atomic<int64_t> clock_ahead_ns_{0};
  std::function<void()> tell_passthrough_{};
};

}  // namespace headgate::app
