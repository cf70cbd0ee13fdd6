#include "headgate/limiter/ask_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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
  BootTime Turn(BootTime now, const Hash128& key = kKey, BootTime last_ask = {0}) {
    return pace->TakeTurn(key, now, 50ms, last_ask).at;
  }
  bool MayAsk(BootTime now, const Hash128& key = kKey, BootTime last_ask = {0}) {
    return Turn(now, key, last_ask) <= now;
  }

  const std::unique_ptr<AskPace> pace = std::make_unique<AskPace>(16);
};

TEST_F(AskPaceTest, OneTurnInEachPause) {
  EXPECT_TRUE(MayAsk(kStart));
  const BootTime next = Turn(kStart + 20ms);
  EXPECT_GE(next, kStart + 50ms);
  EXPECT_LE(next, kStart + 50ms + 2us);
  EXPECT_FALSE(MayAsk(kStart + 49ms));
  EXPECT_TRUE(MayAsk(next));
  EXPECT_FALSE(MayAsk(next));
}

TEST_F(AskPaceTest, EachLoopComesToItsTurn) {
  std::array<BootTime, 16> last_ask{};
  std::array<int, 16> turns{};
  for (BootTime now = kStart; now < kStart + 16s; now = now + 1ms) {
    // The first loop is always the first to ask.
    for (size_t loop = 0; loop < turns.size(); ++loop) {
      if (!MayAsk(now, kKey, last_ask[loop])) continue;
      last_ask[loop] = now;
      ++turns[loop];
    }
  }
  EXPECT_GE(*std::min_element(turns.begin(), turns.end()), 18) << "320 turns, 20 for each";
}

TEST_F(AskPaceTest, ALoopThatIsAloneKeepsThePace) {
  BootTime last_ask{0};
  int turns = 0;
  for (BootTime now = kStart; now < kStart + 10s; now = now + 1ms) {
    if (!MayAsk(now, kKey, last_ask)) continue;
    last_ask = now;
    ++turns;
  }
  EXPECT_GE(turns, 155);
  EXPECT_LE(turns, 200);
}

TEST_F(AskPaceTest, AsksOfAllLoopsCountAndAFewMayFollowEachOther) {
  for (int i = 0; i < AskBudget::kAtOnce; ++i) EXPECT_FALSE(pace->Spend(kKey, kStart, 50ms)) << i;
  EXPECT_TRUE(pace->Spend(kKey, kStart, 50ms));
  EXPECT_TRUE(pace->Spend(kKey, kStart + 50ms, 50ms));
  EXPECT_FALSE(pace->Spend(kKey, kStart + 150ms, 50ms)) << "two pauses, one ask";
  BootTime now = kStart + 10s;
  for (int i = 0; i < 1000; ++i, now = now + 50ms) EXPECT_FALSE(pace->Spend(kKey, now, 50ms)) << i;
}

TEST_F(AskPaceTest, ALoopWhoseLookAtTheClockIsOlderHasToWaitToo) {
  EXPECT_TRUE(MayAsk(kStart));
  EXPECT_FALSE(MayAsk(kStart - 3us));
}

TEST_F(AskPaceTest, KeysInTurnsKeepTheirPlaces) {
  const auto key = [](uint64_t k) { return Hash128{.low = k << 48, .high = kKey.high}; };
  for (uint64_t k = 1; k <= 3; ++k) EXPECT_TRUE(MayAsk(kStart, key(k)));
  for (uint64_t k = 10; k <= 1000; ++k) EXPECT_FALSE(pace->Spend(key(k), kStart, 50ms)) << "no room to remember";
  for (uint64_t k = 1; k <= 3; ++k) EXPECT_FALSE(MayAsk(kStart + 1ms, key(k)));
}

TEST_F(AskPaceTest, ManyThreadsTakeEachTurnOnce) {
  constexpr int kTurns = 1000;
  EXPECT_TRUE(MayAsk(kStart));
  std::vector<int> taken(4);
  std::vector<std::thread> threads;
  for (int& mine : taken) {
    threads.emplace_back([&mine, this] {
      for (int turn = 1; turn <= kTurns; ++turn) {
        if (MayAsk(kStart + turn * 50ms)) ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(taken[0] + taken[1] + taken[2] + taken[3], kTurns);
  EXPECT_GT(taken[0] + taken[1] + taken[2] + taken[3], 0);
}

}  // namespace
}  // namespace headgate::limiter
