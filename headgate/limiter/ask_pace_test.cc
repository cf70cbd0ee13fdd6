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
constexpr AskPace::Seen kFlood{.denied = 1000, .granted = 1};

class AskPaceTest : public ::testing::Test {
 protected:
  bool MayAsk(BootTime now, const AskPace::Seen& seen = kFlood, const Hash128& key = kKey) {
    return pace->TakeTurn(key, now, 50ms, seen).at <= now;
  }
  // From now on the key is known to be abused.
  void Abuse() {
    EXPECT_TRUE(MayAsk(kStart - 100ms));
    EXPECT_TRUE(pace->TakeTurn(kKey, kStart, 50ms, kFlood).in_turns);
  }

  const std::unique_ptr<AskPace> pace = std::make_unique<AskPace>();
};

TEST_F(AskPaceTest, OneTurnInEachPauseForAKeyThatIsAbused) {
  Abuse();
  const AskPace::Turn next = pace->TakeTurn(kKey, kStart + 20ms, 50ms, kFlood);
  EXPECT_TRUE(next.in_turns);
  EXPECT_GE(next.at, kStart + 50ms);
  EXPECT_LE(next.at, kStart + 50ms + 2us);
  EXPECT_FALSE(MayAsk(kStart + 49ms));
  EXPECT_TRUE(MayAsk(next.at));
  EXPECT_FALSE(MayAsk(next.at));
}

TEST_F(AskPaceTest, EachForItselfWhereWhatIsDeniedIsNotFarMoreThanWhatIsGranted) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(MayAsk(kStart + i * 1ms, {.denied = 3, .granted = 1}));
  EXPECT_FALSE(pace->TakeTurn(kKey, kStart + 1s, 50ms, {}).in_turns);
}

// Who wins each turn sees that much is granted, who never does sees nothing: only together they know.
TEST_F(AskPaceTest, IsOfAllLoopsTogether) {
  const AskPace::Seen winner{.denied = 2, .granted = 5}, loser{.denied = 10, .granted = 0};
  BootTime now = kStart;
  int asked = 0;
  for (int pause = 0; pause < 40; ++pause, now = now + 50ms) {
    for (int loop = 0; loop < 16; ++loop) {
      if (MayAsk(now + loop * 1us, loop == 0 ? winner : loser) && pause >= 20) ++asked;
    }
  }
  EXPECT_EQ(asked, 20);
}

TEST_F(AskPaceTest, AbuseIsForgottenWithinSeconds) {
  Abuse();
  EXPECT_FALSE(MayAsk(kStart + 1ms));
  const AskPace::Seen well{.denied = 0, .granted = 5};
  BootTime now = kStart + 20s;
  EXPECT_TRUE(MayAsk(now, well));
  EXPECT_TRUE(MayAsk(now + 1ms, well));
}

TEST_F(AskPaceTest, ALoopWhoseLookAtTheClockIsOlderHasToWaitToo) {
  Abuse();
  EXPECT_FALSE(MayAsk(kStart - 3us));
}

TEST_F(AskPaceTest, AnotherKeyOfTheSamePlaceDoesNotWait) {
  Abuse();
  const Hash128 other{.low = 0x1234'0000'0000'0001, .high = kKey.high};
  EXPECT_TRUE(MayAsk(kStart + 1ms, kFlood, other));
}

TEST_F(AskPaceTest, ManyThreadsTakeEachTurnOnce) {
  constexpr int kTurns = 1000;
  Abuse();
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
