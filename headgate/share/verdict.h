// The answer of a pool to one request.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::share {

enum class Reason : uint8_t {
  kWithinShare,
  kAboveShare,      // admitted to see whether the capacity has grown
  kShareUsed,       // the client has used its share of this cycle
  kNeverFits,       // the cost exceeds the capacity of the whole pool
  kInFlight,        // too many requests are in flight
  kNoClient,        // the request has no client id
  kTooManyClients,  // the client is new, and the pool is full
};

struct PoolAnswer {
  // The request must be sent, and SharePool::OnEnd must follow.
  bool admitted = false;
  uint64_t number = 0;  // of the admitted request, for OnEnd
  // The request is admitted because of Mode::kPassthrough only; `reason` says why it would have
  // been refused.
  bool counted_only = false;
  Reason reason = Reason::kWithinShare;
  bool is_above_limit = false;  // of requests in flight, if it is admitted
  // The client's capacity in this cycle, and the rest of it. Meaningless unless has_limit.
  bool has_limit = false;
  uint64_t limit = 0;
  uint64_t remaining = 0;
  // 0 unless refused. algorithm::kNever if the same request never passes.
  base::Duration retry_after{0};
  base::Duration reset_after{0};  // until the cycle ends
  // Not 0: not refused yet. Ask again in a moment, with this ticket (fleet_pool.h).
  uint64_t ticket = 0;
};

}  // namespace headgate::share
