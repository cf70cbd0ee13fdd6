// Random steps of one bucket, and what the kernel answers to each: for whoever runs the scripts to
// be compared with.
//
// Beside the kernel it keeps what a store of this kind knows besides: a request that takes nothing
// changes nothing, a bucket that is as if never used is forgotten, and a bucket is carried over to
// another limit by the next request that changes it.
#pragma once

#include <optional>
#include <string>

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
};

class TwinWalk {
 public:
  // Whether time makes small steps back, too.

  TwinWalk(uint64_t seed, algorithm::Algorithm algorithm);

  TwinStep Next();
  // What the kernel answers. `absent`: the store has no such key. Nothing where the store is to
  // refuse, too.
  std::optional<algorithm::Decision> Answer(const TwinStep& step);
  // As if never used at that time.
  bool IsFresh(base::Instant now) const;
  void Forget();

  const std::string& story() const { return story_; }
  bool at_the_end_of_time() const { return latest_ >= base::kInstantMax.ns; }

 private:
  algorithm::Cost NextCost();
  int64_t NextTime();
  int64_t Beside() { return static_cast<int64_t>(random_() % 3) - 1; }

  model::Random random_;
  algorithm::LimitSpec spec_;
  int64_t now_;
  int64_t latest_;
  algorithm::Decision last_{};
  // The bucket, and the limit it was last used under.
  std::optional<algorithm::Limit> used_under_{};
  algorithm::BucketState state_{};
  testing::DequeHitLog hits_{};
  base::Instant remembered_until_{0};
  std::string story_;
};

}  // namespace headgate::redis_host
