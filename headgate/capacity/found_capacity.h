// The capacity that a controller has found, for the controller of the next process.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::capacity {

struct FoundCapacity {
  uint64_t per_1000_s = 0;
  uint32_t limit = 0;  // of requests in flight
  base::Duration latency_base{0};

  bool operator==(const FoundCapacity&) const = default;
};

}  // namespace headgate::capacity
