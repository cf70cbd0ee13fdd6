// The requests that a single exact bucket admits under the same demand: the measure of the fleet's
// throughput. It begins as the shared bucket, with the leased requests put back, and decides with
// the product's own algorithm.
#pragma once

#include <cstdint>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/store/hit_list.h"

namespace headgate::simulation {

class Yardstick {
 public:
  // `state` and `hits`: of the shared bucket; `held`: the requests that nodes may still spend from
  // its leases.
  Yardstick(const algorithm::Limit& limit, algorithm::BucketState state, store::HitList hits,
            uint64_t held, base::Instant wall);

  // Whether it lets the request through.
  bool Ask(uint64_t cost, base::Instant wall);

  uint64_t admitted() const { return admitted_; }

 private:
  algorithm::Limit limit_;
  algorithm::BucketState state_;
  store::HitList hits_;
  uint64_t admitted_ = 0;
};

}  // namespace headgate::simulation
