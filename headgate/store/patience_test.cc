#include "headgate/store/patience.h"

#include <gtest/gtest.h>

namespace headgate::store {
namespace patience_test {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{3'600'000'000'000};

Patience::Waiter Call(BootTime sent) {
  return {.started = sent, .sent = sent, .deadline = sent + 250ms, .timeout = 10ms};
}

TEST(Patience, ASilentStoreIsGivenUpAfterTheTimeout) {
  Patience patience(100ms);
  patience.OnFirst(kStart);
  EXPECT_EQ(patience.EndOf(Call(kStart), kStart), kStart + 10ms);
  EXPECT_EQ(patience.EndOf(Call(kStart + 5ms), kStart + 5ms), kStart + 15ms);
}

TEST(Patience, ABurstIsWaitedForAsLongAsTheStoreAnswers) {
  Patience patience(100ms);
  patience.OnFirst(kStart);
  // An answer each 4 ms. All calls were sent together.
  for (base::Duration at = 4ms; at < 250ms; at += 4ms) {
    const BootTime now = kStart + at;
    patience.OnAnswer(at, 10ms, now);
    EXPECT_EQ(patience.EndOf(Call(kStart), now), std::min(now + 10ms, kStart + 250ms)) << at / 1ms;
  }
}

TEST(Patience, AQueueThatDoesNotEndIsNotWaitedFor) {
  Patience patience(100ms);
  patience.OnFirst(kStart);
  for (base::Duration at = 4ms; at <= 248ms; at += 4ms) patience.OnAnswer(30ms, 10ms, kStart + at);
  const BootTime now = kStart + 250ms;
  EXPECT_EQ(patience.EndOf(Call(now), now), now + 10ms) << "no answer was quick for 250 ms";
  EXPECT_EQ(patience.WholeEndOf(Call(now), now), now + 10ms);
  patience.OnAnswer(9ms, 10ms, now);
  EXPECT_EQ(patience.WholeEndOf(Call(now), now), now + 250ms);
}

TEST(Patience, FollowsTheSilencesOfTheStoreWithinBounds) {
  Patience patience(100ms);
  const auto silence_of = [&](base::Duration length, BootTime at) {
    patience.OnFirst(at);
    patience.OnAnswer(length, 10ms, at + length);
    return patience.Silence(10ms, at + length);
  };
  EXPECT_EQ(silence_of(4ms, kStart), 10ms) << "twice 4 ms are less";
  EXPECT_EQ(silence_of(30ms, kStart + 1s), 60ms);
  EXPECT_EQ(patience.Silence(1s, kStart + 2s), 1s);
  EXPECT_EQ(silence_of(70ms, kStart + 2s), 100ms) << "at most";
  for (base::Duration at = 3s; at <= 62s; at += 1s)
    EXPECT_EQ(silence_of(8ms, kStart + at), 100ms) << at / 1s;
  EXPECT_EQ(silence_of(8ms, kStart + 63s), 16ms) << "forgotten after a minute";
}

TEST(Patience, WhatWaitsForNobodyIsNoSilence) {
  Patience patience(100ms);
  patience.OnFirst(kStart);
  patience.OnAnswer(1ms, 10ms, kStart + 1ms);
  patience.OnFirst(kStart + 10s);
  EXPECT_EQ(patience.EndOf(Call(kStart + 10s), kStart + 10s), kStart + 10s + 10ms);
  patience.OnAnswer(1ms, 10ms, kStart + 10s + 1ms);
  EXPECT_EQ(patience.Silence(10ms, kStart + 11s), 10ms);
}

TEST(Patience, APauseOfThisProcessIsNoSilence) {
  Patience patience(100ms);
  patience.OnFirst(kStart);
  patience.OnPause(40ms, kStart + 50ms);
  EXPECT_EQ(patience.EndOf(Call(kStart), kStart + 50ms), kStart + 50ms) << "10 ms were its own";
  patience.OnAnswer(10ms, 10ms, kStart + 50ms);
  EXPECT_EQ(patience.Silence(10ms, kStart + 50ms), 20ms);
}

TEST(Patience, ATimeThatIsSetIsABoundOfTheWhole) {
  Patience patience(10ms);
  patience.OnFirst(kStart);
  patience.OnAnswer(90ms, 10ms, kStart + 90ms);
  EXPECT_EQ(patience.Silence(10ms, kStart + 90ms), 10ms);
  const Patience::Waiter call{
      .started = kStart, .sent = kStart, .deadline = kStart + 10ms, .timeout = 10ms};
  EXPECT_EQ(patience.EndOf(call, kStart + 5ms), kStart + 10ms);
}

}  // namespace patience_test
}  // namespace headgate::store
