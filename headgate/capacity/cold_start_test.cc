#include "headgate/capacity/cold_start.h"

#include <gtest/gtest.h>

namespace headgate::capacity {
namespace cold_start_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart = Instant::FromNanos(1'000'000'000'000);

// Requests that are sent one after the other.
class Answers {
 public:
  // Whether the last of them shows a queue.
  bool Run(int count, Duration latency) {
    bool shows = false;
    for (int i = 0; i < count; ++i) {
      cold.OnSent(now_);
      shows = cold.OnAnswer(now_, now_ + latency);
      now_ += milliseconds(1);
    }
    return shows;
  }
  ColdStart cold;

 private:
  Instant now_ = kStart;
};

TEST(ColdStartTest, AQueueShowsInTheFastestOf16Answers) {
  Answers answers;
  EXPECT_FALSE(answers.Run(16, milliseconds(10)));
  EXPECT_EQ(answers.cold.latency(), milliseconds(10));
  EXPECT_FALSE(answers.Run(16, milliseconds(15))) << "half as much again may be luck";
  EXPECT_FALSE(answers.cold.had_queue());
  EXPECT_FALSE(answers.Run(15, milliseconds(16)));
  EXPECT_TRUE(answers.Run(1, milliseconds(16)));
  EXPECT_FALSE(answers.Run(16, milliseconds(10)));
  EXPECT_TRUE(answers.cold.had_queue()) << "is remembered";
}

TEST(ColdStartTest, SlowRequestsAmongOthersAreNoQueue) {
  Answers answers;
  answers.Run(16, milliseconds(10));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(answers.Run(15, seconds(1)));
    EXPECT_FALSE(answers.Run(1, milliseconds(10)));
  }
}

// The first answers are those of the fastest requests, which would make all others seem slow.
TEST(ColdStartTest, TheFirstRequestsAreComparedNotTheFirstAnswers) {
  ColdStart cold;
  for (int i = 0; i < 32; ++i) cold.OnSent(kStart + milliseconds(i));
  for (int i = 16; i < 32; ++i) cold.OnAnswer(kStart + milliseconds(i), kStart + milliseconds(40));
  EXPECT_EQ(cold.latency(), Duration(0)) << "none of the first is known";
  for (int i = 0; i < 11; ++i) cold.OnAnswer(kStart, kStart + milliseconds(100));
  EXPECT_EQ(cold.latency(), Duration(0));
  cold.OnAnswer(kStart, kStart + milliseconds(112));
  EXPECT_EQ(cold.latency(), milliseconds(101)) << "the others may be long polls";
}

}  // namespace cold_start_test
}  // namespace headgate::capacity
