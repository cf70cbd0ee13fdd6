#include "tests/simulation/yardstick.h"

#include <utility>

#include "headgate/algorithm/decide.h"

namespace headgate::simulation {

Yardstick::Yardstick(const algorithm::Limit& limit, algorithm::BucketState state,
                     store::HitList hits, uint64_t held, base::Instant wall)
    : limit_(limit), state_(state), hits_(std::move(hits)) {
  if (held > 0) (void)algorithm::Refund(limit_, state_, hits_, held, wall);
}

bool Yardstick::Ask(uint64_t cost, base::Instant wall) {
  const bool allowed = algorithm::Decide(limit_, state_, hits_, cost, wall).allowed;
  if (allowed) admitted_ += cost;
  return allowed;
}

}  // namespace headgate::simulation
