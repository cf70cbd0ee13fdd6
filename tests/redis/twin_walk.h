// Random steps of one bucket and the kernel's answer to each step, for comparison with the scripts.
//
// Adds these rules of the store to the C++ algorithm: a request that takes nothing changes nothing,
// a fresh bucket is deleted, and the next request that changes a bucket carries it over to another
// limit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/store/shared_store.h"
#include "headgate/testing/deque_hit_log.h"
#include "tests/model/random_walk.h"

namespace headgate::redis_host {

struct TwinStep {
  algorithm::LimitSpec spec;
  algorithm::Cost cost = 1;
  store::Operation operation = store::Operation::kTake;
  base::Instant now{0};
  base::Instant taken_at{0};  // of an undo
};

class TwinWalk {
 public:
  TwinWalk(uint64_t seed, algorithm::Algorithm algorithm);

  TwinStep Next();
  // The C++ algorithm's answer. `absent`: the store does not have the key. Empty if the store must
  // also refuse.
  std::optional<algorithm::Decision> Answer(const TwinStep& step);
  // Whether the bucket is fresh at that time.
  bool IsFresh(base::Instant now) const;
  void Forget();

  const std::string& story() const { return story_; }
  bool at_the_end_of_time() const { return latest_ >= base::kInstantMax.ns; }

 private:
  algorithm::Cost NextCost();
  int64_t NextTime();
  base::Instant NextTakenAt();

  model::Random random_;
  algorithm::LimitSpec spec_;
  int64_t now_;
  int64_t latest_;
  algorithm::Decision last_{};
  std::vector<base::Instant> times_{};  // of the last steps
  // The bucket and the limit of its last use.
  std::optional<algorithm::Limit> used_under_{};
  algorithm::BucketState state_{};
  testing::DequeHitLog hits_{};
  algorithm::RememberedUntil remembered_until_{};
  std::string story_;
};

}  // namespace headgate::redis_host
