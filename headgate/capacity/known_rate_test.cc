#include "headgate/capacity/known_rate.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace headgate::capacity {
namespace known_rate_test {

KnownRate After(std::initializer_list<uint64_t> rates) {
  KnownRate known(1, 1'000'000);
  for (const uint64_t rate : rates) known.Take(rate);
  return known;
}

TEST(KnownRate, IsTheMedianOfTheFirstThreeWindows) {
  EXPECT_FALSE(After({1000, 1100}).is_known());
  EXPECT_TRUE(After({1000}).has_windows());
  EXPECT_EQ(After({1000, 1200, 1100}).value(), 1100u);
}

// The nine in order: 820 830 840 | 850 1150 1150 | 1160 1170 1180.
TEST(KnownRate, IsTheMeanOfTheMiddleThirdOfTheLastNine) {
  const KnownRate known =
      After({1000, 1000, 1000, 850, 1150, 840, 1160, 830, 1170, 820, 1150, 1180});
  EXPECT_EQ(known.value(), 1050u);
}

TEST(KnownRate, OneOddWindowDoesNotMoveIt) {
  EXPECT_EQ(After({1000, 1000, 1000, 1000, 10}).value(), 1000u);
  EXPECT_EQ(After({1000, 1000, 1000, 1000, 5000}).value(), 1000u);
}

TEST(KnownRate, ThreeInARowThatAreAFifthLessReplaceEverything) {
  KnownRate known = After({1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_FALSE(known.Take(790));
  EXPECT_FALSE(known.Take(770));
  EXPECT_EQ(known.value(), 1000u);
  EXPECT_TRUE(known.Take(780));
  EXPECT_EQ(known.value(), 780u);
}

TEST(KnownRate, ThreeInARowThatAreASixthMoreReplaceEverything) {
  KnownRate known = After({1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_FALSE(known.Take(1170));
  EXPECT_FALSE(known.Take(1190));
  EXPECT_EQ(known.value(), 1000u);
  EXPECT_TRUE(known.Take(1180));
  EXPECT_EQ(known.value(), 1180u);
}

TEST(KnownRate, WindowsThatDifferInOppositeDirectionsChangeNothing) {
  KnownRate known = After({1000, 1000, 1000, 1000, 1000});
  for (const uint64_t rate : {500u, 2000u, 500u}) EXPECT_FALSE(known.Take(rate));
  EXPECT_EQ(known.value(), 1000u);
}

TEST(KnownRate, StaysIfTheMeanChangesByAFortiethOnly) {
  KnownRate known = After({1000, 1000, 1000});
  for (int i = 0; i < 9; ++i) known.Take(1025);
  EXPECT_EQ(known.value(), 1000u);
  for (int i = 0; i < 9; ++i) known.Take(1026);
  EXPECT_EQ(known.value(), 1026u);
}

TEST(KnownRate, IsLessIfARateIsMoreThanATwentiethAbove) {
  const KnownRate known = After({1000, 1000, 1000});
  EXPECT_FALSE(known.IsLessThan(1050));
  EXPECT_TRUE(known.IsLessThan(1051));
  EXPECT_FALSE(After({}).IsLessThan(1051)) << "nothing is known";
}

TEST(KnownRate, IsWithinItsBounds) {
  KnownRate known(500, 2000);
  known.Replace({10, 10, 10});
  EXPECT_EQ(known.value(), 500u);
  known.Replace({9000, 9000, 9000});
  EXPECT_EQ(known.value(), 2000u);
  known.Raise(9000);
  EXPECT_EQ(known.value(), 2000u);
}

TEST(KnownRate, ReplaceForgetsEarlierWindows) {
  KnownRate known = After({1000, 1000, 1000, 1000, 1000});
  known.Replace({500, 520, 480});
  EXPECT_EQ(known.value(), 500u);
  known.Take(500);
  EXPECT_EQ(known.value(), 500u);
}

// Later windows correct the raised rate.
TEST(KnownRate, RaiseCountsAtOnceAndAsOneWindow) {
  KnownRate known = After({1000, 1000, 1000, 1000, 1000});
  known.Raise(1500);
  EXPECT_EQ(known.value(), 1500u);
  known.Take(1600);
  EXPECT_EQ(known.value(), 1500u);
  known.Take(1700);
  EXPECT_EQ(known.value(), 1600u);
}

TEST(KnownRate, BeginsAsIfMeasuredThreeTimes) {
  KnownRate known(1, 1'000'000);
  known.BeginWith(1000);
  EXPECT_EQ(known.value(), 1000u);
  EXPECT_TRUE(known.has_windows());
  known.Take(500);
  EXPECT_EQ(known.value(), 1000u);
}

}  // namespace known_rate_test
}  // namespace headgate::capacity
