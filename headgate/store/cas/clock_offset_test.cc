#include "headgate/store/cas/clock_offset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::cas {
namespace clock_offset_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(ClockOffset, IsNotKnownBeforeItIsMeasured) {
  ClockOffset offset;
  EXPECT_FALSE(offset.last().has_value());
  EXPECT_FALSE(offset.OnMeasured(-5ms, 1ms).has_value());
  EXPECT_EQ(offset.last(), base::Duration(-5ms));
}

TEST(ClockOffset, AlarmsOnceWhenItIsTooFarForCertain) {
  ClockOffset offset;
  EXPECT_FALSE(offset.OnMeasured(30ms, 0ms).has_value());
  EXPECT_FALSE(offset.OnMeasured(35ms, 5ms).has_value());
  const auto alarm = offset.OnMeasured(36ms, 5ms);
  ASSERT_TRUE(alarm.has_value());
  EXPECT_THAT(*alarm, HasSubstr("36 ms ahead of"));
  EXPECT_FALSE(offset.OnMeasured(40ms, 5ms).has_value());
  // Perhaps near again, perhaps not.
  EXPECT_FALSE(offset.OnMeasured(28ms, 5ms).has_value());
  EXPECT_FALSE(offset.OnMeasured(40ms, 5ms).has_value());
  EXPECT_FALSE(offset.OnMeasured(1ms, 1ms).has_value());
  EXPECT_THAT(*offset.OnMeasured(-5s, 1ms), HasSubstr("5000 ms behind"));
}

TEST(ClockOffset, CorrectsAClockThatIsTooFarForCertainUntilItIsNear) {
  ClockOffset offset;
  EXPECT_EQ(offset.correction(), 0ms);
  offset.OnMeasured(20ms, 5ms);
  EXPECT_EQ(offset.correction(), 0ms);
  offset.OnMeasured(5s, 1ms);
  EXPECT_EQ(offset.correction(), 5s);
  // The same clock, measured less well.
  offset.OnMeasured(5s + 40ms, 20ms);
  EXPECT_EQ(offset.correction(), 5s);
  offset.OnMeasured(5s + 40ms, 5ms);
  EXPECT_EQ(offset.correction(), 5s + 40ms);
  offset.OnMeasured(-3s, 1ms);
  EXPECT_EQ(offset.correction(), -3s);
  offset.OnMeasured(10ms, 5ms);
  EXPECT_EQ(offset.correction(), 0ms);
}

}  // namespace clock_offset_test
}  // namespace headgate::store::cas
