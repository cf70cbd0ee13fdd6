#include "headgate/limiter/shared/settle_pace.h"

#include <gtest/gtest.h>

namespace headgate::limiter::shared {
namespace settle_pace_test {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{3'600'000'000'000};

TEST(SettlePace, TriesOnceEachHalfSecondDuringAnOutage) {
  SettlePace pace;
  pace.OnAway(kStart);
  int tries = 0;
  for (BootTime now = kStart; now < kStart + 10s; now = now + 1ms) {
    if (!pace.Take(now)) continue;
    ++tries;
    pace.OnAway(now);
  }
  EXPECT_EQ(tries, 19);
}

TEST(SettlePace, AddsFewCallsWhileTheStoreRecovers) {
  SettlePace pace;
  pace.OnAway(kStart);
  int answers = 0, calls = 0;
  for (BootTime now = kStart + 500ms; now < kStart + 1500ms; now = now + 1ms) {
    pace.OnAnswer();
    ++answers;
    if (now >= pace.next()) {
      while (pace.Take(now)) ++calls;
    }
  }
  EXPECT_GE(calls * 100, answers * 3);
  EXPECT_LE(calls * 100, answers * 5);
}

TEST(SettlePace, SettlesEvenWithoutOtherCalls) {
  SettlePace pace;
  int calls = 0;
  for (BootTime now = kStart; now < kStart + 10s; now = now + 50ms) {
    while (pace.Take(now)) ++calls;
  }
  EXPECT_EQ(calls, 20);
}

}  // namespace settle_pace_test
}  // namespace headgate::limiter::shared
