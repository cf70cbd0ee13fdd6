// Writes a snapshot again and again while the server runs, on a thread of its own, because a large
// one takes seconds. Each interval begins when the write before it ends, so that there are pauses
// between writes to a slow disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "headgate/base/clock.h"
#include "headgate/base/time.h"
#include "headgate/snapshot/snapshot_file.h"

namespace headgate::snapshot {

class PeriodicSnapshot {
 public:
  // The first interval begins now. Both must outlive this object.
  PeriodicSnapshot(SnapshotFile& file, const base::DisciplinedClock& clock, base::Duration interval)
      : file_(file), clock_(clock), interval_(interval), due_ns_((clock.Now() + interval).ns) {}
  // Waits for a write in progress.
  ~PeriodicSnapshot() { Join(); }
  PeriodicSnapshot(const PeriodicSnapshot&) = delete;

  // Begins to write if that is due and no write is in progress. Call it about every second, from
  // one thread.
  void Tick();
  // Waits for a write in progress, and writes once more. Call it at the end, after the last
  // decision, on the thread of Tick.
  bool WriteLast();

 private:
  void Join();

  SnapshotFile& file_;
  const base::DisciplinedClock& clock_;
  const base::Duration interval_;
  std::atomic<int64_t> due_ns_;
  std::atomic<bool> under_way_{false};
  std::thread thread_;
};

}  // namespace headgate::snapshot
