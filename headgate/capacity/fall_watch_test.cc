#include "headgate/capacity/fall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::capacity {
namespace fall_watch_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;

constexpr uint64_t kKnown = 1000 * kMilli;

struct Load {
  int64_t per_second = 1000;
  Duration time{0};
  uint32_t in_flight = 16;  // of a limit of 18
  bool fails = false;
};

// Answers at even distances, with the latency that follows from those in flight; returns how often
// a fall was noticed.
class Answers {
 public:
  int Run(const Load& load) {
    int falls = 0;
    const Instant end = now_ + load.time;
    while (now_ < end) {
      now_ += Duration(seconds(1)) / load.per_second;
      watch.window().Advance(now_, load.in_flight, 18);
      load.fails ? watch.window().OnFailure()
                 : watch.window().OnAnswer(Duration(seconds(1)) * load.in_flight / load.per_second);
      falls += watch.HasFallen(kKnown, now_) ? 1 : 0;
    }
    return falls;
  }
  // Nothing is answered, and requests wait.
  void Pause(Duration time) {
    now_ += time;
    watch.window().Advance(now_, 18, 18);
  }
  FallWatch watch{milliseconds(500), 100};

 private:
  Instant now_{0};
};

TEST(FallWatch, NoticesAFallAfterThreeShortWindows) {
  Answers answers;
  EXPECT_EQ(answers.Run({.time = seconds(5)}), 0);
  EXPECT_EQ(answers.Run({.per_second = 500, .time = milliseconds(1490)}), 0);
  EXPECT_EQ(answers.Run({.per_second = 500, .time = milliseconds(510)}), 1);
  EXPECT_THAT(answers.watch.rates(), Each(::testing::Le(500 * kMilli)));
}

TEST(FallWatch, ASlowUpstreamNeedsAHundredAnswersInEach) {
  Answers answers;
  EXPECT_EQ(answers.Run({.per_second = 50, .time = milliseconds(5900)}), 0);
  EXPECT_EQ(answers.Run({.per_second = 50, .time = milliseconds(200)}), 1);
}

TEST(FallWatch, AFifthLessIsLeftToTheLongWindows) {
  Answers answers;
  EXPECT_EQ(answers.Run({.per_second = 800, .time = seconds(60)}), 0);
}

// Whenever it begins.
TEST(FallWatch, APauseIsNoFall) {
  for (const auto pause : {milliseconds(500), milliseconds(1200)}) {
    for (int offset = 0; offset < 500; offset += 50) {
      Answers answers;
      answers.Run({.time = seconds(2) + milliseconds(offset)});
      answers.Pause(pause);
      EXPECT_EQ(answers.Run({.time = seconds(10)}), 0) << offset;
    }
  }
}

TEST(FallWatch, FewerRequestsAreNoFall) {
  Answers answers;
  EXPECT_EQ(answers.Run({.per_second = 200, .time = seconds(60), .in_flight = 5}), 0);
}

TEST(FallWatch, FailuresAreNoFall) {
  Answers answers;
  EXPECT_EQ(answers.Run({.time = seconds(60), .fails = true}), 0);
}

TEST(FallWatch, ARestartForgetsWindows) {
  Answers answers;
  answers.Run({.per_second = 500, .time = milliseconds(1400)});
  answers.watch.Restart(Instant{0} + milliseconds(1400));
  EXPECT_EQ(answers.Run({.per_second = 500, .time = milliseconds(1400)}), 0);
}

}  // namespace fall_watch_test
}  // namespace headgate::capacity
