// How often a key may be asked for: once per pause, a few asks aside. A generic cell rate algorithm
// (ITU-T I.371, A.1). Whoever asks more often than that, and is given less than it wants, is asking
// for what others lack.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headgate::limiter {

class AskBudget {
 public:
  // Asks that may follow each other at once; a pause gives one back.
  static constexpr int64_t kAtOnce = 8;

  // An ask is made; returns when the budget is even again, which is later than `now` if it is
  // overspent. `even_at` is what the last call returned; any unit of time.
  static int64_t Spend(int64_t even_at, int64_t now, int64_t pause) {
    return std::max(even_at, now - kAtOnce * pause) + pause;
  }
};

}  // namespace headgate::limiter
