#include "headgate/limiter/return_pace.h"

#include <gtest/gtest.h>

namespace headgate::limiter {
namespace {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{10'000'000'000};

TEST(ReturnPace, TheNextIsSentWhenOneIsAnswered) {
  ReturnPace pace(10ms, 2s, kStart);
  EXPECT_TRUE(pace.MaySend(ReturnPace::kAtOnce - 1, kStart));
  EXPECT_FALSE(pace.MaySend(ReturnPace::kAtOnce, kStart));
}

TEST(ReturnPace, AFailureMakesAPause) {
  ReturnPace pace(10ms, 2s, kStart);
  pace.OnAnswer(false, kStart);
  EXPECT_FALSE(pace.MaySend(0, kStart + 10ms - 1ns));
  EXPECT_EQ(pace.wake_at(kStart), kStart + 10ms);
  EXPECT_TRUE(pace.MaySend(0, kStart + 10ms));
  EXPECT_EQ(pace.wake_at(kStart + 10ms), kStart + 100ms);
}

TEST(ReturnPace, ItGivesUpWhenTheStoreAnswersNothingForOneTimeout) {
  ReturnPace pace(10ms, 2s, kStart);
  EXPECT_EQ(pace.timeout(), 100ms) << "no client waits";
  pace.OnAnswer(false, kStart + 50ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 100ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 100ms));
  pace.OnAnswer(true, kStart + 99ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 199ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 199ms));
}

TEST(ReturnPace, AStoreFarAwayHasItsOwnTimeout) {
  const ReturnPace pace(400ms, 2s, kStart);
  EXPECT_EQ(pace.timeout(), 400ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 400ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 400ms));
}

TEST(ReturnPace, ItGivesUpWhenEveryLeaseHasExpired) {
  ReturnPace pace(10ms, 2s, kStart);
  pace.OnAnswer(true, kStart + 2s - 1ns);
  EXPECT_FALSE(pace.GivesUp(kStart + 2s - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 2s));
}

}  // namespace
}  // namespace headgate::limiter
