// The bare arithmetic: algorithm::Decide on one bucket per key and limit, without a store, a lock
// or a limiter. Tests compare the answers of stores, limiters and fronts with those of this driver.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headgate/algorithm/bucket.h"
#include "headgate/testing/deque_hit_log.h"
#include "headgate/testing/scenario_runner.h"

namespace headgate::testing {

class KernelDriver final : public Driver {
 public:
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) override;
  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  struct Bucket {
    algorithm::BucketState state;
    DequeHitLog hits;
    algorithm::RememberedUntil remembered_until{};
  };
  struct RuleBuckets {
    std::vector<algorithm::Limit> limits;
    std::map<std::string, std::vector<Bucket>> buckets;  // one bucket for each limit
  };

  static algorithm::Decision Request(const RuleBuckets& rule, std::vector<Bucket>& buckets,
                                     algorithm::Cost cost, base::Instant now);

  std::map<std::string, RuleBuckets> rules_;
};

}  // namespace headgate::testing
