// Compares the scripts with the C++ algorithms, in the Lua host: over 10^5 random steps for each
// algorithm, without a difference.
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "tests/redis/lua_store.h"
#include "tests/redis/twin_walk.h"

namespace headgate::redis_host {
namespace lua_twin_test {

using algorithm::Algorithm;

constexpr uint64_t kSteps = 100'000;
constexpr uint64_t kStepsOfOneBucket = 200;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'121;

// Describes the first difference in the walk of one bucket; empty if there is none.
std::string WalkOnce(uint64_t seed, Algorithm algorithm, uint64_t* steps) {
  LuaStore store;
  TwinWalk walk(seed, algorithm);
  for (uint64_t i = 0; i < kStepsOfOneBucket && !walk.at_the_end_of_time(); ++i) {
    const TwinStep step = walk.Next();
    ++*steps;
    if (!store.keyspace.Contains("b", step.now)) {
      if (!walk.IsFresh(step.now))
        return walk.story() + "the key is gone, but the bucket has been used";
      walk.Forget();
    } else if (!store.keyspace.TimeToLive("b", step.now)) {
      return walk.story() + "the key does not expire";
    }
    const auto expected = walk.Answer(step);
    const store::LimitHandle limit = store.Intern(step.spec);
    const store::SharedAnswer answer = store.Ask({.name = "b",
                                                  .limit = limit,
                                                  .cost = step.cost,
                                                  .operation = step.operation,
                                                  .taken_at = step.taken_at},
                                                 step.now);
    if (!expected) {
      if (answer.status.code() != absl::StatusCode::kFailedPrecondition)
        return walk.story() + "a queue accepted a refund";
      continue;
    }
    if (!answer.status.ok()) return walk.story() + answer.status.ToString();
    if (answer.decision != *expected) {
      return fmt::format("{}kernel: {}\nscript: {}", walk.story(), model::Describe(*expected),
                         model::Describe(answer.decision));
    }
    if (answer.events.clock_reset) {
      return walk.story() + "an event without a cause";
    }
  }
  return "";
}

class LuaTwin : public ::testing::TestWithParam<Algorithm> {};

TEST_P(LuaTwin, AnswersLikeTheCppAlgorithm) {
  uint64_t steps = 0;
  for (uint64_t i = 0; steps < kSteps; ++i) {
    const uint64_t seed = kSeed + 1'000'000 * static_cast<uint64_t>(GetParam()) + i;
    const std::string difference = WalkOnce(seed, GetParam(), &steps);
    ASSERT_TRUE(difference.empty()) << "seed " << seed << "\n" << difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LuaTwin,
                         ::testing::Values(Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                                           Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kSlidingWindowLog),
                         [](const auto& test) { return std::string(Name(test.param)); });

}  // namespace lua_twin_test
}  // namespace headgate::redis_host
