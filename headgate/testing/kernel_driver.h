// The bare arithmetic: algorithm::Decide on one bucket per key, with no store, no lock and no limiter around it. What
// any of those answers is compared with this.
#pragma once

#include <map>
#include <string>
#include <utility>

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
    base::Instant remembered_until{0};
  };
  struct RuleBuckets {
    algorithm::Limit limit;
    std::map<std::string, Bucket> buckets;
  };

  std::map<std::string, RuleBuckets> rules_;
};

}  // namespace headgate::testing
