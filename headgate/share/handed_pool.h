// The state that a pool passes on to the pool of the next process (SharePool::HandOver), so that a
// restart renews nobody's allowance.
#pragma once

#include <optional>
#include <string>

#include "headgate/base/time.h"
#include "headgate/capacity/found_capacity.h"

namespace headgate::share {

struct HandedPool {
  base::Instant at{0};   // when it was handed over, on the clock of the old process
  std::string shares{};  // algorithm/fair_share_state.h; empty: there are none
  std::optional<capacity::FoundCapacity> found{};  // with `capacity: auto`, if it was found

  bool operator==(const HandedPool&) const = default;
};

}  // namespace headgate::share
