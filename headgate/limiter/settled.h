// The answer to one request of a batch.
#pragma once

#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/mode.h"

namespace headgate::limiter {

// Why the store has not decided.
enum class NoAnswer : uint8_t {
  kUnreachable,
  kBusy,        // too many calls, or other instances write the bucket all the time
  kLocked,      // other instances had the lock of the key
  kRefused,     // the store refuses access
  kDamaged,     // the value of the bucket cannot be read
  kNotStorable  // the bucket would be too large
};

struct Settled {
  algorithm::Decision decision;
  Mode mode = Mode::kMemory;
  // The store did not answer, and may have executed the request.
  bool perhaps_done = false;
  // If the mode is not one of the store's answers.
  NoAnswer no_answer = NoAnswer::kUnreachable;
  // Only of what leases of this instance gave: the newest of these leases, and when. An undo needs
  // both.
  uint64_t lease = 0;
  base::BootTime spent_at{0};
  // Only of permits: the id held one before.
  bool was_held = false;
  // Only of permits: how many are held, which is more than the limit after it was lowered.
  uint32_t in_flight = 0;
};

}  // namespace headgate::limiter
