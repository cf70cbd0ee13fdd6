#include "headgate/limiter/lease/demand.h"

#include <gtest/gtest.h>

namespace headgate::limiter::lease {
namespace demand_test {

using base::BootTime;
using base::Duration;
using namespace std::chrono_literals;

class DemandTest : public ::testing::Test {
 protected:
  // In the interval with this number.
  void Add(int64_t interval, uint64_t cost) { demand.Add(cost, At(interval)); }
  static BootTime At(int64_t interval) { return BootTime{0} + 10s + interval * Demand::kInterval; }

  Demand demand;
};

// The numbers of the picture in the header.
TEST_F(DemandTest, BriefIsHalfTheAverageAndHalfTheLastInterval) {
  EXPECT_EQ(demand.brief(), 0u);
  Add(1, 8);
  Add(2, 0);
  EXPECT_EQ(demand.brief(), 8u);
  Add(2, 4);
  Add(3, 0);
  EXPECT_EQ(demand.brief(), 6u);
  Add(4, 0);
  EXPECT_EQ(demand.brief(), 3u);
  Add(5, 0);
  EXPECT_EQ(demand.brief(), 1u);
}

TEST_F(DemandTest, IntervalsWithoutRequestsCount) {
  Add(1, 8);
  Add(4, 0);
  EXPECT_EQ(demand.brief(), 2u) << "8, then twice the half of it";
}

TEST_F(DemandTest, ABurstCountsAtOnce) {
  Add(1, 100);
  EXPECT_EQ(demand.brief(), 100u);
  EXPECT_EQ(demand.CostIn(2s), 2000u);
}

TEST_F(DemandTest, ASteadyDemandIsExpectedToGoOn) {
  for (int64_t interval = 1; interval <= 200; ++interval) Add(interval, 10);
  EXPECT_EQ(demand.CostIn(2s), 200u);
  Add(201, 0);
  Add(202, 0);
  EXPECT_EQ(demand.brief(), 5u);
  EXPECT_GE(demand.CostIn(2s), 180u) << "one interval without requests is no end";
}

// One in 300 ms is seven in 2 s, although most intervals have none.
TEST_F(DemandTest, RareRequestsAreExpectedInTheLongRun) {
  for (int64_t interval = 1; interval <= 300; interval += 3) Add(interval, 1);
  EXPECT_GE(demand.RequestsIn(2s), 5u);
  EXPECT_LE(demand.RequestsIn(2s), 8u);
}

TEST_F(DemandTest, RequestsAreCountedWhateverTheyCost) {
  Add(1, 50);
  Add(1, 50);
  EXPECT_EQ(demand.RequestsIn(2s), 2u);
}

TEST_F(DemandTest, ALongPauseLeavesNothing) {
  for (int64_t interval = 1; interval <= 200; ++interval) Add(interval, 1000);
  Add(330, 1);
  EXPECT_EQ(demand.brief(), 1u);
  EXPECT_EQ(demand.CostIn(2s), 20u);
  EXPECT_EQ(demand.RequestsIn(2s), 1u);
}

TEST_F(DemandTest, HugeCostsDoNotOverflow) {
  for (int64_t interval = 1; interval <= 20; ++interval) {
    for (int i = 0; i < 3; ++i) Add(interval, ~uint64_t{0});
    EXPECT_GE(demand.brief(), 1u << 23) << interval;
    EXPECT_GE(demand.CostIn(2s), 1u << 23) << interval;
  }
}

}  // namespace demand_test
}  // namespace headgate::limiter::lease
