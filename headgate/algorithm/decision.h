// The answer of a limit: a value with named fields, never an error. Definitions:
// docs/reference/algorithms.md.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::algorithm {

// How much one request takes. A request of cost 0 consumes nothing; it only reads the state.
using Cost = uint64_t;

// The retry_after of a request whose cost exceeds the capacity of its limit: retrying never helps.
inline constexpr base::Duration kNever = base::Duration::max();

struct Decision {
  bool allowed = true;
  uint64_t limit = 0;      // burst for the buckets, requests for the windows
  uint64_t remaining = 0;  // requests of cost 1 that would still be allowed now, after this one
  // 0 when allowed; otherwise the shortest wait, rounded up to 1 ns, or kNever.
  base::Duration retry_after{0};
  base::Duration reset_after{0};  // until the bucket is fresh (FreshAt), rounded up to 1 ns
  // Sliding windows only: until more than `remaining` is available, rounded up to 1 ns. 0 if all is
  // available, or if that is not known.
  base::Duration more_after{0};
  base::Duration wait{0};  // queue only: how long to hold the request before it passes
  // More was charged than the limit can hold, so the excess has to be refilled first.
  bool overdrawn = false;
  // For how long the key is denied because of an earlier denial (LimitSpec::block); 0: it is not.
  base::Duration blocked_for{0};
  // When it was decided, on the clock of the bucket's store, which sets it. An undo of the take
  // names this time.
  base::Instant at{0};

  bool never_fits() const { return retry_after == kNever; }
  bool blocked() const { return blocked_for > base::Duration(0); }
  // Whether two decisions give the same answer, whenever they were made; more_after may be known to
  // one of them only.
  bool operator==(const Decision& other) const {
    return allowed == other.allowed && limit == other.limit && remaining == other.remaining &&
           retry_after == other.retry_after && reset_after == other.reset_after &&
           wait == other.wait && overdrawn == other.overdrawn && blocked_for == other.blocked_for;
  }
};

}  // namespace headgate::algorithm
