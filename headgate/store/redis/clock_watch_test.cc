#include "headgate/store/redis/clock_watch.h"

#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace clock_watch_test {

using base::BootTime;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

struct ClockWatches : ::testing::Test {
  // An answer that took `round_trip`, of which `there` until the clock was read.
  std::optional<Duration> Answer(Duration round_trip = 1ms, Duration there = 500us) {
    return watch.OnAnswer(Instant::FromNanos(0) + 1h + store + there, BootTime{0} + 1h + ours,
                          BootTime{0} + 1h + ours + round_trip);
  }
  void Passes(Duration time) {
    store += time;
    ours += time;
  }

  ClockWatch watch{3s};
  Duration store{0};
  Duration ours{0};
};

TEST_F(ClockWatches, ClocksThatGoAlikeAreFine) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Answer(), std::nullopt);
    Passes(1s);
  }
}

TEST_F(ClockWatches, APauseThatOursMissedIsSeenAtTheNextAnswerAndOnce) {
  Answer();
  Passes(1s);
  Answer();
  store += 3s;
  Passes(1s);
  const auto missed = Answer();
  ASSERT_TRUE(missed.has_value());
  EXPECT_NEAR(static_cast<double>(missed->count()), 3e9, 2e6);
  for (int i = 0; i < 5; ++i) {
    Passes(1s);
    EXPECT_EQ(Answer(), std::nullopt);
  }
}

TEST_F(ClockWatches, APauseBehindTheQuestionIsSeenToo) {
  Answer();
  Passes(1s);
  EXPECT_TRUE(Answer(1ms, 3s).has_value());
}

TEST_F(ClockWatches, ADifferenceWithinTheMarginOfLeasesIsNoPause) {
  Answer();
  Passes(2s);
  store += 70ms;
  EXPECT_EQ(Answer(), std::nullopt) << "25 ms and 2.5 % of 2 s are 75";
  Passes(1s);
  store += 40ms;
  EXPECT_TRUE(Answer().has_value()) << "together they are more than that";
}

// A busy machine on either side: however long an answer takes, the clock was read in between.
TEST_F(ClockWatches, SlowAnswersLookLikeNothing) {
  for (const Duration round_trip :
       {Duration(1ms), Duration(3s), Duration(10ms), Duration(10s), Duration(1ms)}) {
    for (const Duration there : {Duration(0), round_trip / 2, round_trip}) {
      EXPECT_EQ(Answer(round_trip, there), std::nullopt);
      Passes(round_trip);
      Passes(500ms);
    }
  }
}

TEST_F(ClockWatches, AServersClockThatIsSetBackLooksLikeNothingAndForwardLikeAPause) {
  Answer();
  Passes(1s);
  store -= 1h - 2s;
  EXPECT_EQ(Answer(), std::nullopt);
  Passes(1s);
  store += 1min;
  EXPECT_TRUE(Answer().has_value());
}

TEST_F(ClockWatches, AnotherServerIsNotCompared) {
  Answer();
  Passes(1s);
  store += 1min;
  watch.Reset();
  EXPECT_EQ(Answer(), std::nullopt);
}

// After a long time without an answer, a difference that drift can explain is not a step of the
// clock.
TEST_F(ClockWatches, ALongSilenceIsAllowedItsDrift) {
  Answer();
  Passes(100s);
  store += 2s;
  EXPECT_EQ(Answer(), std::nullopt);
  Passes(100s);
  store += 3s;
  EXPECT_TRUE(Answer().has_value());
}

}  // namespace clock_watch_test
}  // namespace headgate::store::redis
