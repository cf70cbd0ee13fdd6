#include "headgate/capacity/pool_probe.h"

#include <gtest/gtest.h>

namespace headgate::capacity {
namespace pool_probe_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Result = PoolProbe::Result;

constexpr uint64_t kRate = 1000 * kMilli;

// A window of this length; the pool refused one of ten requests in it, or none.
LoadWindow Window(Duration length, bool is_refused) {
  LoadWindow window(Instant{0});
  for (int i = 0; i < 90; ++i) window.OnSent();
  for (int i = 0; i < 10 && is_refused; ++i) window.OnRefusedByPool();
  window.Advance(Instant{0} + length, 1, 18);
  return window;
}

class PoolProbeTest : public ::testing::Test {
 protected:
  void Refused(int windows, Duration length = seconds(1)) {
    for (int i = 0; i < windows; ++i) probe_.OnWindow(Window(length, true), Result::kOver);
  }
  // How many requests are taken in a second.
  int Taken() {
    int taken = 0;
    for (const Instant end = now_ + seconds(1); now_ < end; now_ += Duration(100'000))
      taken += probe_.Takes(kRate, now_) ? 1 : 0;
    return taken;
  }
  PoolProbe probe_{seconds(1)};
  Instant now_ = Instant{0} + seconds(100);
};

// A probe sends 500 more each second. 500 of the next second may come early.
TEST_F(PoolProbeTest, AfterSevenSecondsOfRefusalsHalfAsMuchIsSentAgain) {
  Refused(6);
  EXPECT_EQ(Taken(), 0);
  Refused(1);
  EXPECT_NEAR(Taken(), 500 + 500, 1);
  EXPECT_NEAR(Taken(), 500, 1);
}

TEST_F(PoolProbeTest, LongWindowsCountByTheirTime) {
  Refused(1, seconds(6));
  EXPECT_EQ(Taken(), 0);
  Refused(1, seconds(2));
  EXPECT_GT(Taken(), 0);
}

TEST_F(PoolProbeTest, WindowsWithoutRefusalsDoNotCount) {
  for (int i = 0; i < 100; ++i) probe_.OnWindow(Window(seconds(1), false), Result::kOver);
  EXPECT_EQ(Taken(), 0);
}

TEST_F(PoolProbeTest, IfTheAnswersFollowTwiceAsMuchIsSent) {
  Refused(7);
  Taken();
  for (int i = 0; i < 2; ++i) {
    probe_.OnWindow(Window(seconds(1), true), Result::kFollowed);
    Taken();
    EXPECT_NEAR(Taken(), 1000, 1) << "never more than twice";
  }
}

TEST_F(PoolProbeTest, IfTheLimitWasTooLowTheProbeIsRepeated) {
  Refused(7);
  Taken();
  probe_.OnWindow(Window(seconds(1), true), Result::kLimitTooLow);
  EXPECT_NEAR(Taken(), 500, 1);
}

TEST_F(PoolProbeTest, IfTheAnswersDoNotFollowTheNextProbeIsSevenSecondsLater) {
  Refused(7);
  probe_.OnWindow(Window(seconds(1), true), Result::kOver);
  EXPECT_EQ(Taken(), 0);
  Refused(6);
  EXPECT_EQ(Taken(), 0);
  Refused(1);
  EXPECT_GT(Taken(), 0);
}

TEST_F(PoolProbeTest, StopEndsIt) {
  Refused(7);
  probe_.Stop();
  EXPECT_EQ(Taken(), 0);
}

TEST_F(PoolProbeTest, ASlowUpstreamGetsAtLeastOneMore) {
  Refused(7);
  EXPECT_TRUE(probe_.Takes(1, now_)) << "one in a thousand seconds";
  EXPECT_FALSE(probe_.Takes(1, now_ + seconds(900)));
  EXPECT_TRUE(probe_.Takes(1, now_ + seconds(1000)));
}

}  // namespace pool_probe_test
}  // namespace headgate::capacity
