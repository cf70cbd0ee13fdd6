#include "headgate/limiter/ask_pace.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace headgate::limiter {
namespace {

using base::BootTime;
using base::Hash128;
using namespace std::chrono_literals;

constexpr Hash128 kKey{.low = 0xabcd'0000'0000'0001, .high = 7};
constexpr BootTime kStart{3'600'000'000'000};

class AskPaceTest : public ::testing::Test {
 protected:
  const std::unique_ptr<AskPace> pace = std::make_unique<AskPace>();
};

TEST_F(AskPaceTest, OneTurnInEachPause) {
  EXPECT_EQ(pace->TakeTurn(kKey, kStart, 50ms), kStart);
  const BootTime next = pace->TakeTurn(kKey, kStart + 20ms, 50ms);
  EXPECT_GE(next, kStart + 50ms);
  EXPECT_LE(next, kStart + 50ms + 2us);
  EXPECT_GT(pace->TakeTurn(kKey, kStart + 49ms, 50ms), kStart + 49ms);
  EXPECT_EQ(pace->TakeTurn(kKey, next, 50ms), next);
  EXPECT_GT(pace->TakeTurn(kKey, next, 50ms), next);
}

TEST_F(AskPaceTest, ALoopWhoseLookAtTheClockIsOlderHasToWaitToo) {
  EXPECT_EQ(pace->TakeTurn(kKey, kStart, 50ms), kStart);
  EXPECT_GT(pace->TakeTurn(kKey, kStart - 3us, 50ms), kStart);
}

TEST_F(AskPaceTest, AnotherKeyOfTheSamePlaceDoesNotWait) {
  const Hash128 other{.low = 0x1234'0000'0000'0001, .high = kKey.high};
  EXPECT_EQ(pace->TakeTurn(kKey, kStart, 50ms), kStart);
  EXPECT_EQ(pace->TakeTurn(other, kStart + 1ms, 50ms), kStart + 1ms);
}

TEST_F(AskPaceTest, ManyThreadsTakeEachTurnOnce) {
  constexpr int kTurns = 1000;
  std::vector<int> taken(4);
  std::vector<std::thread> threads;
  for (int& mine : taken) {
    threads.emplace_back([&mine, this] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const BootTime now = kStart + turn * 50ms;
        if (pace->TakeTurn(kKey, now, 50ms) == now) ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(taken[0] + taken[1] + taken[2] + taken[3], kTurns);
  EXPECT_GT(taken[0] + taken[1] + taken[2] + taken[3], 0);
}

}  // namespace
}  // namespace headgate::limiter
