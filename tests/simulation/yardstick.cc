#include "tests/simulation/yardstick.h"

#include "headgate/algorithm/decide.h"
#include "headgate/store/redis/hit_list.h"

namespace headgate::simulation {

Yardstick::Yardstick(const algorithm::Limit& limit, algorithm::BucketState state, uint64_t held, base::Instant wall)
    : limit_(limit), state_(state) {
  store::redis::HitList no_hits;
  (void)algorithm::Refund(limit_, state_, no_hits, held, wall);
}

void Yardstick::Ask(uint64_t cost, base::Instant wall) {
  store::redis::HitList no_hits;
  if (algorithm::Decide(limit_, state_, no_hits, cost, wall).allowed) admitted_ += cost;
}

}  // namespace headgate::simulation
