#include "headgate/observe/degraded_watch.h"

#include <gtest/gtest.h>

namespace headgate::observe {
namespace degraded_watch_test {

using namespace std::chrono_literals;
using Change = DegradedWatch::Change;

base::Instant At(base::Duration since) { return base::Instant{} + since; }

TEST(DegradedWatch, SaysNothingWhileTheStoreDecides) {
  DegradedWatch watch;
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(watch.Look(0, i, At(i * 1s)), Change::kNone);
}

TEST(DegradedWatch, SaysOnceThatItBeginsAndOnceThatItEnds) {
  DegradedWatch watch;
  EXPECT_EQ(watch.Look(3, 10, At(1s)), Change::kBegan);
  EXPECT_EQ(watch.Look(7, 10, At(2s)), Change::kNone);
  EXPECT_EQ(watch.Look(9, 12, At(3s)), Change::kNone);
  EXPECT_EQ(watch.Look(9, 20, At(3s + DegradedWatch::kQuiet - 1ms)), Change::kNone);
  EXPECT_EQ(watch.Look(9, 30, At(3s + DegradedWatch::kQuiet)), Change::kEnded);
  EXPECT_EQ(watch.lasted(), 2s);
  EXPECT_EQ(watch.decided(), 9u);
  EXPECT_EQ(watch.Look(9, 40, At(20s)), Change::kNone);
}

TEST(DegradedWatch, DoesNotTakeSilenceForTheStoresReturn) {
  DegradedWatch watch;
  EXPECT_EQ(watch.Look(1, 5, At(1s)), Change::kBegan);
  EXPECT_EQ(watch.Look(1, 6, At(2s)), Change::kNone);
  EXPECT_EQ(watch.Look(1, 6, At(60s)), Change::kNone);
  EXPECT_EQ(watch.Look(2, 6, At(61s)), Change::kNone);
  EXPECT_EQ(watch.Look(2, 7, At(66s)), Change::kEnded);
}

TEST(DegradedWatch, SaysItAgainWhenItBeginsAgain) {
  DegradedWatch watch;
  EXPECT_EQ(watch.Look(1, 0, At(1s)), Change::kBegan);
  EXPECT_EQ(watch.Look(1, 1, At(7s)), Change::kEnded);
  EXPECT_EQ(watch.Look(4, 1, At(9s)), Change::kBegan);
  EXPECT_EQ(watch.decided(), 3u);
  EXPECT_EQ(watch.lasted(), 0s);
}

}  // namespace degraded_watch_test
}  // namespace headgate::observe
