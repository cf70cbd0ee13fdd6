#include "headgate/net/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace headgate::net {
namespace event_loop_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

struct TestLoop {
  base::SystemClock clock;
  EventLoop loop{clock};
  std::vector<std::string> said;

  bool Until(size_t count) {
    return loop.RunUntil([&] { return said.size() >= count; }, 10s);
  }
};

TEST(EventLoop, CallsAHookOnceBehindTheWorkOfItsTurn) {
  TestLoop test;
  EventLoop::Hook hook(test.loop, [&] { test.said.emplace_back("end"); });
  for (const char* work : {"a", "b", "c"}) {
    test.loop.Post([&, work] {
      test.said.emplace_back(work);
      test.loop.AtEndOfTurn(hook);
    });
  }
  EXPECT_TRUE(test.Until(4));
  EXPECT_THAT(test.said, ElementsAre("a", "b", "c", "end"));
  test.loop.AtEndOfTurn(hook);
  EXPECT_TRUE(test.Until(5));
}

TEST(EventLoop, ForgetsAHookThatGoes) {
  TestLoop test;
  EventLoop::Hook first(test.loop, [&] { test.said.emplace_back("first"); });
  auto second =
      std::make_unique<EventLoop::Hook>(test.loop, [&] { test.said.emplace_back("second"); });
  EventLoop::Hook third(test.loop, [&] { test.said.emplace_back("third"); });
  for (EventLoop::Hook* hook : {&first, second.get(), &third}) test.loop.AtEndOfTurn(*hook);
  second.reset();
  EXPECT_TRUE(test.Until(2));
  EXPECT_THAT(test.said, ElementsAre("first", "third"));
}

TEST(EventLoop, RunsWhatOtherThreadsPostUntilItIsStopped) {
  TestLoop test;
  std::thread thread([&] { test.loop.Run(); });
  test.loop.Post([&] {
    test.said.emplace_back("posted");
    test.loop.Stop();
  });
  thread.join();
  EXPECT_THAT(test.said, ElementsAre("posted"));
}

TEST(EventLoop, RunsWhatItsOwnWorkPostsInTheNextTurn) {
  TestLoop test;
  EventLoop::Hook hook(test.loop, [&] { test.said.emplace_back("end"); });
  test.loop.Post([&] {
    test.loop.AtEndOfTurn(hook);
    test.loop.Post([&] { test.said.emplace_back("next"); });
  });
  EXPECT_TRUE(test.Until(2));
  EXPECT_THAT(test.said, ElementsAre("end", "next"));
}

TEST(EventLoop, HearsOtherThreadsWhileItWaits) {
  TestLoop test;
  std::thread loop_thread([&] { test.loop.Run(); });
  constexpr int kCount = 2000;
  std::atomic<int> heard{0};
  std::array<std::thread, 3> others;
  for (std::thread& other : others) {
    other = std::thread([&] {
      for (int i = 0; i < kCount; ++i) {
        test.loop.Post([&] { ++heard; });
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& other : others) other.join();
  test.loop.Post([&] { test.loop.Stop(); });
  loop_thread.join();
  EXPECT_EQ(heard, 3 * kCount);
}

TEST(EventLoop, IsStoppedWhileItWaits) {
  TestLoop test;
  std::thread thread([&] { test.loop.Run(); });
  test.loop.Stop();
  thread.join();
  test.loop.Post([&] { test.said.emplace_back("afterwards"); });
  test.loop.Run();
  EXPECT_THAT(test.said, ::testing::IsEmpty());
}

// The sanitizers need a descriptor themselves.
#ifndef __SANITIZE_ADDRESS__
TEST(EventLoop, SaysThatTheSystemHasNoDescriptorLeft) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const base::SystemClock clock;
  EXPECT_THROW(EventLoop{clock}, std::system_error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}
#endif

TEST(Timer, CallsOnceInTimeAlsoWhenItIsSetAnew) {
  TestLoop test;
  const base::BootTime begin = test.loop.Now();
  Timer timer(test.loop, [&] { test.said.emplace_back("time"); });
  timer.Set(begin + 1h);
  timer.Set(begin + 5ms);
  timer.Set(begin + 15ms);
  EXPECT_TRUE(test.Until(1));
  EXPECT_GE(test.loop.Now() - begin, 15ms);
  EXPECT_LT(test.loop.Now() - begin, 5s);
  EXPECT_FALSE(test.loop.RunUntil([&] { return test.said.size() > 1; }, 30ms));
}

TEST(Timer, CallsNobodyWhenItWasCancelledOrIsGone) {
  TestLoop test;
  Timer cancelled(test.loop, [&] { test.said.emplace_back("cancelled"); });
  cancelled.Set(test.loop.Now() + 1ms);
  cancelled.Cancel();
  auto gone = std::make_unique<Timer>(test.loop, [&] { test.said.emplace_back("gone"); });
  gone->Set(test.loop.Now() + 1ms);
  gone.reset();
  EXPECT_FALSE(test.loop.RunUntil([&] { return !test.said.empty(); }, 20ms));
}

// However far away the time is, the loop's sums of times stay in range.
TEST(Timer, MayBeSetForTheEndOfTime) {
  TestLoop test;
  Timer timer(test.loop, [&] { test.said.emplace_back("time"); });
  timer.Set(base::BootTime::FromNanos(INT64_MAX));
  EXPECT_FALSE(test.loop.RunUntil([&] { return !test.said.empty(); }, 5ms));
  timer.Set(test.loop.Now());
  EXPECT_TRUE(test.Until(1));
}

// The clock stands still: a time is never reached, a wait is over.
TEST(Timer, WaitsByTheSystemsClock) {
  const base::ManualClock still;
  EventLoop loop{still};
  bool reached = false;
  bool waited = false;
  Timer by_time(loop, [&] { reached = true; });
  Timer by_wait(loop, [&] {
    waited = true;
    loop.Stop();
  });
  by_time.Set(loop.Now() + 1ms);
  by_wait.SetAfter(20ms);
  loop.Run();
  EXPECT_TRUE(waited);
  EXPECT_FALSE(reached);
}

TEST(Timer, MayGoOrBeSetAnewInItsOwnCall) {
  TestLoop test;
  std::unique_ptr<Timer> gone;
  gone = std::make_unique<Timer>(test.loop, [&] {
    gone.reset();
    test.said.emplace_back("gone");
  });
  gone->Set(test.loop.Now());
  EXPECT_TRUE(test.Until(1));
  int left = 3;
  Timer again(test.loop, [&] {
    test.said.emplace_back("again");
    if (--left > 0) again.Set(test.loop.Now());
  });
  again.Set(test.loop.Now());
  EXPECT_TRUE(test.Until(4));
  EXPECT_FALSE(test.loop.RunUntil([&] { return test.said.size() > 4; }, 5ms));
}

// A timer goes before it is due, so its alarm wakes the loop for nothing. The next timer needs an
// alarm of its own.
TEST(Timer, IsCalledAlsoAfterAnAlarmForNobody) {
  base::SystemClock clock;
  EventLoop loop{clock};
  std::atomic<bool> called{false};
  std::unique_ptr<Timer> timer;
  const auto set = [&](base::Duration wait) {
    timer = std::make_unique<Timer>(loop, [&] {
      called = true;
      loop.Stop();
    });
    timer->SetAfter(wait);
  };
  set(20ms);
  std::thread thread([&] { loop.Run(); });
  std::atomic<bool> removed{false};
  loop.Post([&] {
    timer.reset();
    removed = true;
  });
  const base::BootTime begin = clock.BootNow();
  const auto wait_until = [&](const auto& is_true) {
    while (!is_true() && clock.BootNow() < begin + 10s) std::this_thread::yield();
  };
  wait_until([&] { return removed.load(); });
  wait_until([&] { return clock.BootNow() > begin + 60ms; });
  if (!called) loop.Post([&] { set(1ms); });
  wait_until([&] { return called.load(); });
  EXPECT_TRUE(called);
  loop.Stop();
  thread.join();
}

TEST(Timer, WaitsLessThanAMillisecond) {
  TestLoop test;
  base::Duration least = 1h;
  for (int i = 0; i < 200; ++i) {
    const base::BootTime begin = test.loop.Now();
    Timer timer(test.loop, [&] { test.said.emplace_back("time"); });
    timer.Set(begin + 100us);
    ASSERT_TRUE(test.Until(test.said.size() + 1));
    least = std::min(least, test.loop.Now() - begin);
    ASSERT_GE(test.loop.Now() - begin, 100us);
  }
  EXPECT_LT(least, 1ms) << "the machine is never that busy 200 times in a row";
}

TEST(Timer, AreCalledInTheOrderOfTheirTimes) {
  TestLoop test;
  std::vector<std::unique_ptr<Timer>> timers;
  const base::BootTime begin = test.loop.Now();
  for (const int after : {9, 3, 6, 1}) {
    timers.push_back(std::make_unique<Timer>(
        test.loop, [&, after] { test.said.push_back(std::to_string(after)); }));
    timers.back()->Set(begin + std::chrono::milliseconds(after));
  }
  EXPECT_TRUE(test.Until(4));
  EXPECT_THAT(test.said, ElementsAre("1", "3", "6", "9"));
}

}  // namespace event_loop_test
}  // namespace headgate::net
