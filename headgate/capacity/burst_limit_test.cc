#include "headgate/capacity/burst_limit.h"

#include <gtest/gtest.h>

namespace headgate::capacity {
namespace burst_limit_test {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kKnee = 10 * kMilli;
constexpr uint32_t kLimit = 18;

struct Load {
  bool in_bursts = true;
  int latency_ms = 10;  // of the last answer; they come at even distances
};

// In bursts, the limit binds for a quarter of the window and refuses half of the requests.
LoadWindow Window(const Load& load) {
  LoadWindow window(Instant{0});
  window.Advance(Instant{0} + milliseconds(250), kLimit, kLimit);
  window.Advance(Instant{0} + seconds(1), 0, kLimit);
  for (int i = 1; i <= 100; ++i) {
    window.OnSent();
    window.OnAnswer(milliseconds(load.latency_ms) * i / 100);
    if (load.in_bursts) window.OnRefusedByLimit();
  }
  return window;
}

class BurstLimitTest : public ::testing::Test {
 protected:
  // The limit after a window with this rate.
  uint32_t After(const Load& load, uint64_t rate = 1000 * kMilli) {
    limit_ = static_cast<uint32_t>(bursts_.After(Window(load), {.rate = rate,
                                                                .knee_milli = kKnee,
                                                                .has_capacity = has_capacity_,
                                                                .limit = limit_,
                                                                .limit_most = 100}));
    return limit_;
  }
  BurstLimit bursts_;
  uint32_t limit_ = kLimit;
  bool has_capacity_ = true;
};

TEST_F(BurstLimitTest, TheLimitDoublesFromTheSecondWindowOfBurstsUpToTheMost) {
  EXPECT_EQ(After({}), 18u);
  EXPECT_FALSE(bursts_.is_raised());
  EXPECT_EQ(After({}), 36u);
  EXPECT_TRUE(bursts_.is_raised());
  EXPECT_EQ(After({}), 72u);
  EXPECT_EQ(After({}), 100u);
}

TEST_F(BurstLimitTest, OneWindowWithoutBurstsBeginsTheCountAnew) {
  After({});
  After({.in_bursts = false});
  EXPECT_EQ(After({}), 18u);
}

// A limit that is twice as high makes the last answer take twice as long. It grows by quarters.
TEST_F(BurstLimitTest, TheLastAnswerOfABurstMayTakeASecond) {
  After({.latency_ms = 990});
  EXPECT_EQ(After({.latency_ms = 990}), 18u);
  EXPECT_EQ(After({.latency_ms = 790}), 22u) << "a quarter makes it 988 ms";
  limit_ = 18;
  EXPECT_EQ(After({.latency_ms = 650}), 27u);
  limit_ = 18;
  EXPECT_EQ(After({.latency_ms = 490}), 36u);
}

// 1.6 times the knee and 2.
TEST_F(BurstLimitTest, AfterARestOf30WindowsTheLimitFallsIfThatCostsNoAnswers) {
  for (int i = 0; i < 3; ++i) After({});
  for (int i = 0; i < 28; ++i) EXPECT_EQ(After({.in_bursts = false}), 72u);
  EXPECT_EQ(After({.in_bursts = false}), 36u);
  EXPECT_EQ(After({.in_bursts = false}, 880 * kMilli), 18u) << "an eighth fewer is luck";
  EXPECT_EQ(After({.in_bursts = false}), 18u);
  EXPECT_FALSE(bursts_.is_raised());
}

TEST_F(BurstLimitTest, IfTheHalfCostsAnswersTheLimitReturnsForAnother30Windows) {
  for (int i = 0; i < 3; ++i) After({});
  for (int i = 0; i < 29; ++i) After({.in_bursts = false});
  EXPECT_EQ(limit_, 36u);
  EXPECT_EQ(After({}, 870 * kMilli), 72u);
  for (int i = 0; i < 29; ++i) EXPECT_EQ(After({.in_bursts = false}), 72u);
  EXPECT_EQ(After({.in_bursts = false}), 36u);
}

TEST_F(BurstLimitTest, ARaisedLimitStaysWhileTheCapacityIsUnknown) {
  has_capacity_ = false;
  After({});
  After({});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(After({.in_bursts = false}), 36u);
}

// More than 1.2 times the knee were in flight for the whole window.
TEST_F(BurstLimitTest, AWindowWithoutAnIdleWorkerAndWithRefusalsIsSaturated) {
  const auto busy_window = [](uint32_t in_flight, int refused) {
    LoadWindow window(Instant{0}, BusyMark(kKnee));
    window.Advance(Instant{0} + seconds(1), in_flight, 100);
    for (int i = 0; i < refused; ++i) window.OnRefusedByLimit();
    for (uint32_t i = 0; i < in_flight; ++i) window.OnAnswer(seconds(1));
    return window;
  };
  const auto busy = static_cast<uint32_t>(BusyMark(kKnee));
  EXPECT_TRUE(BurstLimit::IsSaturated(busy_window(busy, 1), kKnee));
  EXPECT_FALSE(BurstLimit::IsSaturated(busy_window(busy - 1, 1), kKnee)) << "a worker was idle";
  EXPECT_FALSE(BurstLimit::IsSaturated(busy_window(busy, 0), kKnee)) << "nobody asked for more";
  EXPECT_FALSE(BurstLimit::IsSaturated(busy_window(busy, 1), kKnee * 2)) << "the mark was too low";
}

}  // namespace burst_limit_test
}  // namespace headgate::capacity
