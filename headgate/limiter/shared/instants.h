// The time of decisions, by which debts are paid and windows end. It may be behind the store's
// clock.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::shared {

// Follows the instants of the requests. For one thread.
class Instants {
 public:
  explicit Instants(const store::SharedStore& store) : store_(store) {}

  // A request is decided as of `now`.
  void Follow(base::Instant now) { ahead_ns_ = now.ns - store_.Now().ns; }

  base::Instant At(base::BootTime time) const {
    return base::Instant::FromNanos(time.ns + ahead_ns_);
  }
  base::Instant Now() const { return At(store_.Now()); }

 private:
  const store::SharedStore& store_;
  int64_t ahead_ns_ = 0;
};

}  // namespace headgate::limiter::shared
