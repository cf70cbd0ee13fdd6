// tests/compile_fail shows that the three kinds of time cannot be mixed.
#include "headgate/base/time.h"

#include <type_traits>

namespace headgate::base {
namespace time_test {

using std::chrono::seconds;

TEST(Time, DistancesAreDurationsAndDurationsMovePoints) {
  const Instant t = Instant::FromNanos(5'000'000'000);
  EXPECT_EQ(t - Instant::FromNanos(2'000'000'000), seconds(3));
  EXPECT_EQ(t + seconds(1), Instant::FromNanos(6'000'000'000));
  EXPECT_EQ(t - seconds(6), Instant::FromNanos(-1'000'000'000));
  Instant moved = t;
  moved += seconds(2);
  EXPECT_EQ(moved.ns, 7'000'000'000);
}

TEST(Time, PointsAreOrdered) {
  EXPECT_LT(WallTime::FromNanos(1), WallTime::FromNanos(2));
  EXPECT_EQ(WallTime::FromNanos(2), WallTime::FromNanos(2));
}

TEST(Time, IsEightTrivialBytes) {
  static_assert(std::is_trivial_v<Instant> && sizeof(Instant) == 8);
  EXPECT_EQ(Instant{}, Instant::FromNanos(0));
}

TEST(Time, InstantsFromOutsideAreBroughtIntoTheRangeThatDecisionsComputeWith) {
  EXPECT_EQ(Clamp(Instant::FromNanos(-1)), Instant::FromNanos(0));
  EXPECT_EQ(Clamp(Instant::FromNanos(INT64_MIN)), Instant::FromNanos(0));
  EXPECT_EQ(Clamp(Instant::FromNanos(17)), Instant::FromNanos(17));
  EXPECT_EQ(Clamp(kInstantMax), kInstantMax);
  EXPECT_EQ(Clamp(Instant::FromNanos(INT64_MAX)), kInstantMax);
}

TEST(Time, TheLongestDurationAfterTheLatestInstantDoesNotOverflow) {
  EXPECT_EQ((kInstantMax + kDurationMax).ns, INT64_MAX);
}

}  // namespace time_test
}  // namespace headgate::base
