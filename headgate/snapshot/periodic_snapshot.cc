#include "headgate/snapshot/periodic_snapshot.h"

namespace headgate::snapshot {

void PeriodicSnapshot::Tick() {
  if (!file_.enabled() || clock_.Now().ns < due_ns_.load(std::memory_order_acquire)) return;
  if (under_way_.exchange(true)) return;
  Join();
  thread_ = std::thread([this] {
    file_.Write(clock_.Now());
    due_ns_.store((clock_.Now() + interval_).ns, std::memory_order_release);
    under_way_.store(false);
  });
}

bool PeriodicSnapshot::WriteLast() {
  Join();
  return file_.Write(clock_.Now());
}

void PeriodicSnapshot::Join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace headgate::snapshot
