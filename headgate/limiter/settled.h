// The answer to one request of a batch.
#pragma once

#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/limiter/mode.h"

namespace headgate::limiter {

struct Settled {
  algorithm::Decision decision;
  Mode mode = Mode::kMemory;
  // Only of permits: the id held one before.
  bool was_held = false;
  // Only of permits: how many are held, which is more than the limit after it was lowered.
  uint32_t in_flight = 0;
};

}  // namespace headgate::limiter
