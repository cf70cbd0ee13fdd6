// Fleets with strict buckets keep their promises under faults, and the simulator finds planted
// bugs. More seeds: ./dev simulate --strict --seeds 10000.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/strict_simulation/world.h"

namespace headgate::strict_simulation {
namespace strict_simulation_test {

// Each seed is another fleet with other faults.
constexpr uint64_t kSeeds = 200;

TEST(StrictSimulation, AdmitsWhatOneBucketAdmits) {
  simulation::Coverage coverage;
  Outcome sum;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Plan plan = Draw(seed);
    const Outcome outcome = World(plan, std::nullopt, coverage).Run();
    ASSERT_EQ(outcome.failure, "") << ToString(plan);
    sum.admitted += outcome.admitted;
    sum.failed += outcome.failed;
  }
  EXPECT_GT(sum.admitted, kSeeds * 100) << "the premise";
  EXPECT_GT(sum.failed, kSeeds * 30) << "the premise";
  for (const std::string_view mark : kMarks) EXPECT_GT(coverage.Seen(mark), 0u) << mark;
}

TEST(StrictSimulation, ASeedRepeatsItsRunExactly) {
  simulation::Coverage coverage;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const uint64_t digest = World(Draw(seed), std::nullopt, coverage).Run().digest;
    EXPECT_EQ(digest, World(Draw(seed), std::nullopt, coverage).Run().digest);
    EXPECT_NE(digest, World(Draw(seed + 1), std::nullopt, coverage).Run().digest);
  }
}

class StrictMutants : public ::testing::TestWithParam<MutantRow> {};

TEST_P(StrictMutants, IsFound) {
  simulation::Coverage coverage;
  std::string failure;
  for (uint64_t seed = 1; seed <= kSeeds && failure.empty(); ++seed)
    failure = World(Draw(seed), GetParam().mutant, coverage).Run().failure;
  EXPECT_NE(failure, "") << GetParam().bug;
}

INSTANTIATE_TEST_SUITE_P(All, StrictMutants, ::testing::ValuesIn(kMutants), [](const auto& row) {
  std::string name(row.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace strict_simulation_test
}  // namespace headgate::strict_simulation
