#include "headgate/limiter/shared/return_pace.h"

#include <gtest/gtest.h>

namespace headgate::limiter::shared {
namespace return_pace_test {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{10'000'000'000};

TEST(ReturnPace, TheNextMessageIsSentWhenOneIsAnswered) {
  ReturnPace pace(10ms, 2s, kStart);
  EXPECT_TRUE(pace.MaySend(ReturnPace::kAtOnce - 1, kStart));
  EXPECT_FALSE(pace.MaySend(ReturnPace::kAtOnce, kStart));
}

TEST(ReturnPace, AFailureMakesAPause) {
  ReturnPace pace(10ms, 2s, kStart);
  pace.OnAnswer(false, kStart);
  EXPECT_FALSE(pace.MaySend(0, kStart + 10ms - 1ns));
  EXPECT_EQ(pace.wake_at(true), kStart + 10ms) << "even in the past, until the caller has looked";
  EXPECT_EQ(pace.wake_at(false), kStart + 500ms);
  EXPECT_TRUE(pace.MaySend(0, kStart + 10ms));
}

TEST(ReturnPace, GivesUpIfTheStoreDoesNotAnswerForOneTimeout) {
  ReturnPace pace(10ms, 2s, kStart);
  EXPECT_EQ(pace.timeout(), 500ms) << "no client waits";
  pace.OnAnswer(false, kStart + 50ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 500ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 500ms));
  pace.OnAnswer(true, kStart + 499ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 999ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 999ms));
}

TEST(ReturnPace, ALongerStoreTimeoutIsUsed) {
  const ReturnPace pace(700ms, 2s, kStart);
  EXPECT_EQ(pace.timeout(), 700ms);
  EXPECT_FALSE(pace.GivesUp(kStart + 700ms - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 700ms));
}

TEST(ReturnPace, GivesUpWhenEveryLeaseHasExpired) {
  ReturnPace pace(10ms, 2s, kStart);
  pace.OnAnswer(true, kStart + 2s - 1ns);
  EXPECT_FALSE(pace.GivesUp(kStart + 2s - 1ns));
  EXPECT_TRUE(pace.GivesUp(kStart + 2s));
}

}  // namespace return_pace_test
}  // namespace headgate::limiter::shared
