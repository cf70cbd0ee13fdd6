#include "headgate/observe/degraded_watch.h"

#include <utility>

namespace headgate::observe {

DegradedWatch::Change DegradedWatch::Look(uint64_t alone, uint64_t together, base::Instant now) {
  const uint64_t alone_before = std::exchange(alone_, alone);
  const uint64_t together_before = std::exchange(together_, together);
  if (alone > alone_before) {
    last_at_ = now;
    if (std::exchange(going_on_, true)) return Change::kNone;
    began_at_ = now;
    alone_before_ = alone_before;
    return Change::kBegan;
  }
  if (!going_on_ || together == together_before || now - last_at_ < kQuiet) return Change::kNone;
  going_on_ = false;
  return Change::kEnded;
}

}  // namespace headgate::observe
