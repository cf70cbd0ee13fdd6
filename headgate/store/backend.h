// A shared store as a process runs it: one Backend, with one SharedStore for each event loop.
// headgate/store/open makes a Backend from a URL; each adapter implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headgate/store/shared_store.h"
#include "headgate/store/store_counters.h"
#include "headgate/store/store_listener.h"

namespace headgate::store {

// What an adapter needs from the process. Everything referred to must outlive the backend.
struct BackendContext {
  LimitTable& limits;
  // Names this process; no other process has this name.
  std::string instance;
  // For jitter.
  uint64_t seed;
  // Makes the listener of an event loop. Called while the backend is made.
  std::function<StoreListener(uint32_t loop)> listener_of;
};

// Made before the event loops run, and destroyed after they have ended.
class Backend {
 public:
  virtual ~Backend() = default;

  // The store as the event loop with this index asks it, on that loop's thread alone.
  virtual SharedStore& store(uint32_t loop) = 0;

  // The store's URL without user and password, for logs.
  virtual std::string name() const = 0;

  // Tells the store that this instance is gone, and then calls `done`; also if the store does not
  // answer in time. On the thread of the first event loop. Call it once.
  virtual void Leave(std::function<void()> done) = 0;

  // The sums over all event loops. From any thread.
  virtual StoreCounters counters() const = 0;
  // The number of instances as last counted in the store; 1 if it never said. From any thread.
  virtual uint32_t instances() const = 0;
};

}  // namespace headgate::store
