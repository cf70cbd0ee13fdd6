// Divides scarce units, such as slots of connections, among clients: the dynamic thresholds of
// Choudhury and Hahne for queues that share the memory of a switch (IEEE/ACM Transactions on
// Networking 6(2), 1998). A client may take one more unit as long as it has fewer than kAlpha times
// the free ones.
//
// With n clients that take all they can get, each ends with about kAlpha / (1 + n kAlpha) of all
// units:
//
//   of 256 places     one client 227, 28 free     two 120 each, 15 free     eight 31 each, 3 free
//
// So nobody has to be told how many clients there are. Clients that come later begin with the part
// that stays free. Then the threshold falls, and clients above it get no more places until enough
// of their requests have ended.
#pragma once

#include <cstdint>

namespace headgate::proxy {

inline constexpr uint64_t kAlpha = 8;

// Whether a client that has `own` units may take one of the `free` ones. The last `kept` free ones
// are for clients that have none.
constexpr bool MayTakeOne(uint64_t own, uint64_t free, uint64_t kept = 1) {
  if (own == 0) return free > 0;
  return free > kept && own < kAlpha * (free - kept);
}

}  // namespace headgate::proxy
