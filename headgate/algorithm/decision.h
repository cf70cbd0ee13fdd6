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
  base::Duration reset_after{0};  // until the bucket is as if never used, rounded up to 1 ns
  base::Duration wait{0};  // only the queue: how long to hold the request before letting it go

  bool never_fits() const { return retry_after == kNever; }
  bool operator==(const Decision&) const = default;
};

}  // namespace headgate::algorithm
