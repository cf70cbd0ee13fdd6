// Whether a store can be used by this process, as its event loops have found. A process that has
// never been able to use its store is not ready: it would decide alone, and each such instance
// would admit whole limits. Once one loop has used the store, later failures are outages.
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace headgate::store {

class Usability {
 public:
  // The last finding of this loop: OK if it has used the store.
  void Set(size_t loop, const absl::Status& state) {
    const std::lock_guard lock(mutex_);
    states_[loop] = state;
    was_usable_ = was_usable_ || state.ok();
  }
  // OK if the store was usable, or nothing has been found yet.
  absl::Status problem() const {
    const std::lock_guard lock(mutex_);
    if (was_usable_ || states_.empty()) return absl::OkStatus();
    return absl::UnavailableError("the store: " + std::string(states_.begin()->second.message()));
  }
  bool has_answered() const {
    const std::lock_guard lock(mutex_);
    return !states_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::map<size_t, absl::Status> states_;
  bool was_usable_ = false;
};

}  // namespace headgate::store
