// Limits how often the store is asked for a key: once per pause, plus a small burst. A generic cell
// rate algorithm (ITU-T I.371, A.1). An instance that asks more often and is still granted less
// than it wants asks for requests that other instances need.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headgate::limiter::lease {

class AskBudget {
 public:
  // Asks that may follow each other at once; each pause gives one back.
  static constexpr int64_t kAtOnce = 8;
  // A storm that has ended is forgotten after this many pauses.
  static constexpr int64_t kOverspentMost = 4;

  // Records an ask. Returns the time up to which all asks so far use one ask per pause; the budget
  // is overspent if this is later than `now`. `even_at` is the previous result; any unit of time.
  static int64_t Spend(int64_t even_at, int64_t now, int64_t pause) {
    return std::min(std::max(even_at, now - kAtOnce * pause) + pause, now + kOverspentMost * pause);
  }
};

}  // namespace headgate::limiter::lease
