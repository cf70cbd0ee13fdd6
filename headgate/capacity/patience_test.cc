#include "headgate/capacity/patience.h"

#include <gtest/gtest.h>

namespace headgate::capacity {
namespace patience_test {

using base::Duration;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

Duration ValueOf(Duration latency_base, Duration limit_time) {
  Patience patience;
  patience.SetKnown(latency_base, limit_time);
  return patience.value();
}

TEST(PatienceTest, Is32TimesTheBaseLatencyOr4TimesThatOfAFullLimit) {
  EXPECT_EQ(ValueOf(milliseconds(10), milliseconds(18)), milliseconds(320));
  EXPECT_EQ(ValueOf(milliseconds(10), milliseconds(200)), milliseconds(800)) << "bursts wait";
  EXPECT_EQ(ValueOf(milliseconds(1), milliseconds(2)), milliseconds(250)) << "the least";
  EXPECT_EQ(ValueOf(seconds(5), seconds(8)), minutes(1)) << "the most";
}

TEST(PatienceTest, IsLongerWhileLittleIsKnown) {
  EXPECT_EQ(Patience().value(), seconds(10));
  EXPECT_EQ(ValueOf(Duration(0), Duration(0)), seconds(10));
  EXPECT_EQ(ValueOf(milliseconds(10), Duration(0)), seconds(2));
  EXPECT_EQ(ValueOf(milliseconds(100), Duration(0)), milliseconds(3200));
}

// 32 answers are judged together.
TEST(PatienceTest, DoublesIfFewerThanOneOfEightAnswersComeInTime) {
  Patience patience;
  patience.SetKnown(milliseconds(10), milliseconds(18));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(i < 4 ? 320 : 321));
  EXPECT_EQ(patience.value(), milliseconds(320));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(i < 3 ? 320 : 321));
  EXPECT_EQ(patience.value(), milliseconds(640));
  for (int i = 0; i < 32 * 20; ++i) patience.OnAnswer(minutes(2));
  EXPECT_EQ(patience.value(), minutes(1));
}

TEST(PatienceTest, HalvesIfMoreThanAQuarterTakeLessThanHalfOfIt) {
  Patience patience;
  patience.SetKnown(milliseconds(10), milliseconds(18));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(321));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(i < 8 ? 320 : 321));
  EXPECT_EQ(patience.value(), milliseconds(640));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(i < 9 ? 320 : 321));
  EXPECT_EQ(patience.value(), milliseconds(320));
  for (int i = 0; i < 32; ++i) patience.OnAnswer(milliseconds(1));
  EXPECT_EQ(patience.value(), milliseconds(320)) << "not less than at first";
}

}  // namespace patience_test
}  // namespace headgate::capacity
