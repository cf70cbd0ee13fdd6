// How much of something scarce one client may have: the dynamic thresholds that Choudhury and Hahne
// gave to the queues of a switch that share its memory (IEEE/ACM Transactions on Networking 6(2),
// 1998). A client may have one more as long as it has less than kAlpha times what is free.
//
// With n clients that want all they can get, each ends with about kAlpha / (1 + n kAlpha) of it:
//
//   of 256 places     one client 227, 28 free     two 120 each, 15 free     eight 31 each, 3 free
//
// So nobody has to be told how many clients there are. The part that stays free is what clients
// that come later begin with. Then the threshold falls, and those who have more get no others until
// theirs have ended.
#pragma once

#include <cstdint>

namespace headgate::proxy {

inline constexpr uint64_t kAlpha = 8;

// Whether a client that has `own` of them may take one of `free`. The last `kept` ones are for
// clients that have none.
constexpr bool MayTakeOne(uint64_t own, uint64_t free, uint64_t kept = 1) {
  if (own == 0) return free > 0;
  return free > kept && own < kAlpha * (free - kept);
}

}  // namespace headgate::proxy
