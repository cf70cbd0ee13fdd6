#include "headgate/store/redis/heartbeat.h"

#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace heartbeat_test {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{1'000'000'000};

class InstanceCountTest : public ::testing::Test {
 protected:
  InstanceCount count{7s};
};

TEST_F(InstanceCountTest, BelievesASetThatItIsIn) {
  EXPECT_EQ(count.OnHeard(1, true, kStart), 1u);
  EXPECT_EQ(count.OnHeard(3, false, kStart + 2s), 3u);
  EXPECT_EQ(count.OnHeard(2, false, kStart + 4s), 2u);
}

// An instance that it has replaced was still in the set at the first beat.
TEST_F(InstanceCountTest, OneThatLeavesAfterTheFirstBeatIsNotCountedAnyMore) {
  EXPECT_EQ(count.OnHeard(2, true, kStart), 2u);
  EXPECT_EQ(count.OnHeard(1, false, kStart + 2s), 1u);
}

// The set was flushed, or its server was down until the set expired: each instance comes back in
// its turn.
TEST_F(InstanceCountTest, ASetThatFillsAgainIsNotAFleetThatShrank) {
  EXPECT_EQ(count.OnHeard(3, true, kStart), 3u);
  EXPECT_EQ(count.OnHeard(1, true, kStart + 60s), 3u);
  EXPECT_EQ(count.OnHeard(2, false, kStart + 62s), 3u);
  EXPECT_EQ(count.OnHeard(3, false, kStart + 64s), 3u);
  EXPECT_EQ(count.OnHeard(2, false, kStart + 66s), 2u) << "one has gone";
}

TEST_F(InstanceCountTest, AnInstanceThatDoesNotReturnInTimeIsGone) {
  EXPECT_EQ(count.OnHeard(3, true, kStart), 3u);
  EXPECT_EQ(count.OnHeard(1, true, kStart + 60s), 3u);
  EXPECT_EQ(count.OnHeard(2, false, kStart + 66s), 3u);
  EXPECT_EQ(count.OnHeard(2, false, kStart + 67s), 2u);
}

}  // namespace heartbeat_test
}  // namespace headgate::store::redis
