// Logs what happens to the shared store.
#pragma once

#include <cstdint>
#include <functional>

#include "headgate/observe/log.h"
#include "headgate/store/store_listener.h"

namespace headgate::shared_store {

// A listener for the event loop with this index. `drop_leases` is called when leases held on that
// loop must not be spent any more. The log must outlive the listener.
store::StoreListener LogStore(observe::Log& log, uint64_t loop, std::function<void()> drop_leases);

}  // namespace headgate::shared_store
