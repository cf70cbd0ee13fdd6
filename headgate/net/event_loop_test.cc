#include "headgate/net/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace headgate::net {
namespace {

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

}  // namespace
}  // namespace headgate::net
