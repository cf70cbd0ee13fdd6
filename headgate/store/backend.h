// A shared store for a whole process: one Backend, with one SharedStore for each event loop.
// headgate/store/open makes a Backend from a URL; each adapter implements the interface.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "headgate/base/clock.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store_counters.h"
#include "headgate/store/store_listener.h"

namespace headgate::store {

namespace cas {
class VersionedStore;
}

// The objects and settings of the process that an adapter needs. All references must outlive the
// backend.
struct BackendContext {
  LimitTable& limits;
  // The time of decisions, for stores that have no clock of their own.
  const base::DisciplinedClock& clock;
  // A name that is unique to this process, and Headgate's version, for people.
  std::string instance;
  std::string version;
  // For jitter.
  uint64_t seed;
  // The number of instances as counted outside of the store; 0 if it is not counted. From any
  // thread. The larger count is used.
  std::function<uint32_t()> instances_elsewhere{};
  // Makes the listener of an event loop. Called while the backend is created.
  std::function<StoreListener(uint32_t loop)> listener_of;

  // The larger of the store's count and the count made elsewhere.
  uint32_t InstancesOf(uint32_t counted) const {
    return std::max(counted, instances_elsewhere ? instances_elsewhere() : 0);
  }
};

// Made before the event loops run, and destroyed after they have ended.
class Backend {
 public:
  virtual ~Backend() = default;

  // The store for the event loop with this index. Use it only on that loop's thread.
  virtual SharedStore& store(uint32_t loop) = 0;

  // Values with versions in the same store, for state that is not a bucket (cas/versioned_store.h).
  // Use them, too, only on that loop's thread.
  virtual cas::VersionedStore& values(uint32_t loop) = 0;

  // The store's URL without user and password, for logs.
  virtual std::string name() const = 0;

  // Why this process has never been able to use the store: a missing table, a refused login, a
  // missing right. OK once the store has been used; later failures are outages. Callable from any
  // thread.
  virtual absl::Status problem() const { return absl::OkStatus(); }

  // Call it when another process replaces this one: the store soon stops counting this instance,
  // which may still use the store. At most once, on the thread of the first event loop, before
  // Leave.
  virtual void LeaveCount() {}

  // Tells the store that this instance is leaving, then calls `done`, even if the store does not
  // answer in time. Call it once, on the thread of the first event loop.
  virtual void Leave(std::function<void()> done) = 0;

  // Summed over all event loops. Callable from any thread.
  virtual StoreCounters counters() const = 0;
  // The number of instances as last counted, in the store or elsewhere; 1 if it was never counted.
  // Callable from any thread.
  virtual uint32_t instances() const = 0;

  // How far this instance's clock is ahead of the common reference clock of all instances, as last
  // measured; nothing if it is not measured. Callable from any thread.
  virtual std::optional<base::Duration> clock_offset() const { return std::nullopt; }

  // Shows in the store which rules this instance has in force, if the store shows its instances. On
  // any thread while the loops run, or before.
  virtual void ShowRules(uint64_t /*generation*/, const std::string& /*fingerprint*/) {}
};

}  // namespace headgate::store
