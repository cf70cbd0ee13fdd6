// The answer to one request of a batch.
#pragma once

#include "headgate/algorithm/decision.h"
#include "headgate/limiter/mode.h"

namespace headgate::limiter {

struct Settled {
  algorithm::Decision decision;
  Mode mode = Mode::kMemory;
  // Only of permits: the id held one before.
  bool was_held = false;
};

}  // namespace headgate::limiter
