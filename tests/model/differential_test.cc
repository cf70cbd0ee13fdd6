// Compares the algorithms with the reference model in over a million random steps each, for
// intervals that are a whole number of nanoseconds and for others.
#include "tests/model/random_walk.h"

namespace headgate::model {
namespace differential_test {

using algorithm::Algorithm;

constexpr uint64_t kSteps = 1'100'000;

// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'121;

class Differential : public ::testing::TestWithParam<Algorithm> {};

TEST_P(Differential, TheAlgorithmAnswersLikeTheDefinition) {
  EXPECT_EQ(WalkAndCompare(kSeed + static_cast<uint64_t>(GetParam()), GetParam(), kSteps), "");
}

INSTANTIATE_TEST_SUITE_P(Of, Differential,
                         ::testing::Values(Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                                           Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kSlidingWindowLog),
                         [](const auto& test) { return std::string(Name(test.param)); });

}  // namespace differential_test
}  // namespace headgate::model
