// The settings of a pool whose clients share its capacity fairly (fair_share_pool.h).
#pragma once

#include <cstdint>

#include "headgate/algorithm/fair_share.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The effect of a client that first appears in the middle of a cycle.
enum class OnNewClient : uint8_t {
  kRedivide,  // the shares change; use so far stays counted, and the cycle still ends at its
              // original time
  kRestart,   // a new cycle begins. Trusts its clients: each new name renews everyone's allowance
};

// The effect of a request that is denied although its client is within its even share, because the
// rest of this share is lent out.
enum class Reclaim : uint8_t {
  kNextCycle,  // the client gets its own back when the cycle ends
  kAtOnce,     // the cycle ends early, so the client gets its own back now
};

struct FairShareOptions {
  uint64_t capacity = 0;  // per cycle; at least 1
  // A longer cycle makes shares steadier, a shorter one makes them adapt sooner.
  base::Duration cycle{0};
  Ratio reservation{};  // the part of its even share that an idle client keeps
  Lending lending = Lending::kProportional;
  OnNewClient on_new_client = OnNewClient::kRedivide;
  Reclaim reclaim = Reclaim::kNextCycle;
  // No cycle is cut short (kRestart, kAtOnce) before this time has passed since it began; 0 means a
  // tenth of `cycle`. Raise it if shares change too often.
  base::Duration minimum_cycle{0};
  // A client without a request for this many cycles leaves at the end of a cycle. Until then its
  // even share is counted, although others borrow it. 0: clients never leave.
  uint32_t leave_after_cycles = 10;
  uint32_t clients_max = 1024;  // a further client replaces the one with the longest silence
  // Whether the pool spreads its capacity over the cycle (fair_share_lending.cc). This is not
  // needed if something else bounds the requests in flight.
  bool is_paced = true;

  bool operator==(const FairShareOptions&) const = default;

  // InvalidArgument with a message for the person who configured these options.
  absl::Status Validate() const;
};

}  // namespace headgate::algorithm
