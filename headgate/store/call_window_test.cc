#include "headgate/store/call_window.h"

#include <gtest/gtest.h>

#include <deque>

namespace headgate::store {
namespace call_window_test {

using base::BootTime;
using namespace std::chrono_literals;

constexpr BootTime kStart{3'600'000'000'000};

TEST(CallWindow, GrowsWhileCallsWaitAndAnswersAreQuick) {
  CallWindow window(4096);
  EXPECT_EQ(window.size(), 512u) << "the calls of one turn travel together";
  for (int i = 0; i < 512; ++i) window.OnAnswer(1ms, 10ms, /*wanted*/ true);
  EXPECT_EQ(window.size(), 1024u);
  for (int i = 0; i < 64; ++i) window.OnAnswer(1ms, 10ms, /*wanted*/ false);
  EXPECT_EQ(window.size(), 1024u);
  for (int i = 0; i < 64; ++i) window.OnAnswer(6ms, 10ms, /*wanted*/ true);
  EXPECT_EQ(window.size(), 1024u);
  for (int i = 0; i < 5000; ++i) window.OnAnswer(1ms, 10ms, /*wanted*/ true);
  EXPECT_EQ(window.size(), 4096u);
}

TEST(CallWindow, ShrinksOnceForCallsThatWereUnderWayTogether) {
  CallWindow window(64);
  for (int i = 0; i < 30; ++i) window.OnTimeout(kStart, kStart + 10ms);
  EXPECT_EQ(window.size(), 32u);
  window.OnTimeout(kStart + 10ms, kStart + 20ms);
  EXPECT_EQ(window.size(), 16u);
  for (int i = 0; i < 16; ++i) window.OnAnswer(1ms, 10ms, /*wanted*/ true);
  EXPECT_EQ(window.size(), 17u) << "by one for each window of answers, from now on";
  for (int i = 2; i < 20; ++i) window.OnTimeout(kStart + i * 10ms, kStart + (i + 1) * 10ms);
  EXPECT_EQ(window.size(), 4u);
}

TEST(CallWindow, NeverMoreThanItMay) {
  CallWindow window(2);
  EXPECT_EQ(window.size(), 2u);
  window.OnTimeout(kStart, kStart + 10ms);
  EXPECT_EQ(window.size(), 2u);
}

TEST(CallWindow, KnowsWhatCannotBeAnsweredInTime) {
  CallWindow window(1024);
  EXPECT_TRUE(window.MakesIt(kStart + 1ms, kStart));
  for (int i = 0; i < 100; ++i) window.OnAnswer(4ms, 10ms, false);
  EXPECT_TRUE(window.MakesIt(kStart + 5ms, kStart));
  EXPECT_FALSE(window.MakesIt(kStart + 3ms, kStart));
}

// A server needs 5 µs per call and gets a burst that it cannot handle within 10 ms. Every call that
// is sent is answered in time, and the server is always busy.
TEST(CallWindow, ABurstKeepsAServerBusyAndNoCallWaitsThereInVain) {
  CallWindow window(4096);
  std::deque<BootTime> under_way;
  int waiting = 5000, answered = 0, late = 0;
  BootTime busy_until = kStart;
  for (BootTime now = kStart; now < kStart + 10ms; now = now + 5us) {
    while (waiting > 0 && under_way.size() < window.size() && window.MakesIt(kStart + 10ms, now)) {
      under_way.push_back(now);
      --waiting;
    }
    if (under_way.empty() || busy_until > now) continue;
    busy_until = now + 5us;
    const base::Duration took = busy_until - under_way.front();
    under_way.pop_front();
    (busy_until > kStart + 10ms ? late : answered) += 1;
    window.OnAnswer(took, 10ms, waiting > 0);
  }
  EXPECT_GE(answered, 1800);
  EXPECT_EQ(late, 0);
  EXPECT_LE(under_way.size(), 1000u) << "what it does in half of their time";
}

}  // namespace call_window_test
}  // namespace headgate::store
