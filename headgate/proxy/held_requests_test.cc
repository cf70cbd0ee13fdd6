#include "headgate/proxy/held_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace headgate::proxy {
namespace held_requests_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);

struct HeldRequestsTest : ::testing::Test {
  struct Named final : HeldRequests::Entry {
    Named(HeldRequestsTest& t, std::string n) : test(t), name(std::move(n)) {}
    void OnDue(base::Instant) override {
      test.called.push_back(name);
      if (then) then();
    }
    void OnQueueEnded(base::Instant) override { test.called.push_back(name + " ended"); }
    HeldRequestsTest& test;
    std::string name;
    std::function<void()> then;
  };
  std::vector<std::string> TakeCalled() { return std::exchange(called, {}); }

  std::vector<std::string> called;
  std::vector<base::Duration> wakes;
  HeldRequests queue{4, [this](base::Instant due) { wakes.push_back(due - kStart); }};
  Named a{*this, "a"};
  Named b{*this, "b"};
  Named c{*this, "c"};
};

TEST_F(HeldRequestsTest, CallsInOrderOfTimeThenOfArrival) {
  queue.Hold(a, kStart + 2s);
  queue.Hold(b, kStart + 1s);
  queue.Hold(c, kStart + 2s);
  queue.Advance(kStart + 1s - 1ns);
  EXPECT_THAT(TakeCalled(), IsEmpty());
  queue.Advance(kStart + 1s);
  EXPECT_THAT(TakeCalled(), ElementsAre("b"));
  EXPECT_FALSE(b.is_held());
  queue.Advance(kStart + 5s);
  EXPECT_THAT(TakeCalled(), ElementsAre("a", "c"));
}

TEST_F(HeldRequestsTest, WakesForTheFirstTime) {
  queue.Hold(a, kStart + 2s);
  queue.Hold(b, kStart + 3s);  // not earlier
  queue.Hold(c, kStart + 1s);
  EXPECT_THAT(wakes, ElementsAre(2s, 1s));
  wakes.clear();
  queue.Advance(kStart + 1s);
  EXPECT_THAT(wakes, ElementsAre(2s));
}

TEST_F(HeldRequestsTest, EntryLeavesByItself) {
  auto gone = std::make_unique<Named>(*this, "gone");
  queue.Hold(*gone, kStart);
  queue.Hold(a, kStart);
  gone.reset();
  queue.Release(a);
  EXPECT_FALSE(a.is_held());
  queue.Advance(kStart);
  EXPECT_THAT(called, IsEmpty());
}

TEST_F(HeldRequestsTest, EntryThatIsCalledMayHoldAndReleaseOthers) {
  a.then = [&] {
    queue.Release(b);
    queue.Hold(a, kStart + 1s);
    queue.Hold(c, kStart);
  };
  queue.Hold(a, kStart);
  queue.Hold(b, kStart);
  wakes.clear();
  queue.Advance(kStart);
  EXPECT_THAT(called, ElementsAre("a", "c"));
  EXPECT_TRUE(a.is_held());
  EXPECT_THAT(wakes, ElementsAre(1s)) << "once, at the end";
}

TEST_F(HeldRequestsTest, LetGoCallsAllInTheirOrder) {
  queue.Hold(a, kStart + 9s);
  queue.Hold(b, kStart + 5s);
  queue.Await(c);
  queue.LetGo();
  EXPECT_THAT(wakes.back(), base::Instant{0} - kStart);
  EXPECT_THAT(called, IsEmpty()) << "not in the middle of other work";
  queue.Advance(kStart);
  EXPECT_THAT(TakeCalled(), ElementsAre("b", "a"));
  EXPECT_TRUE(c.is_held()) << "its answer has not come";
  queue.Hold(a, kStart + 1s);
  queue.Advance(kStart);
  EXPECT_THAT(called, IsEmpty()) << "only the held ones";
}

TEST_F(HeldRequestsTest, EndsThoseAtOnceWhoseTimeIsAfterTheEnd) {
  queue.Hold(a, kStart + 3s);
  queue.Hold(b, kStart + 3s + 1ns);
  EXPECT_FALSE(queue.ends_before(kStart + 4s));
  queue.EndAt(kStart + 3s);
  EXPECT_THAT(called, IsEmpty()) << "not in the middle of other work";
  EXPECT_THAT(wakes.back(), base::Instant{0} - kStart);
  queue.Advance(kStart);
  EXPECT_THAT(TakeCalled(), ElementsAre("b ended"));
  EXPECT_FALSE(b.is_held());
  EXPECT_TRUE(queue.ends_before(kStart + 3s + 1ns));
  EXPECT_FALSE(queue.ends_before(kStart + 3s));
  queue.Advance(kStart + 3s);
  EXPECT_THAT(TakeCalled(), ElementsAre("a"));
}

TEST_F(HeldRequestsTest, EntryWithoutATimeIsHeldUntilTheEnd) {
  queue.Await(a);
  queue.Await(b);
  EXPECT_THAT(wakes, IsEmpty());
  queue.Hold(b, kStart);  // its answer has come
  queue.Advance(kStart + 1h);
  EXPECT_THAT(TakeCalled(), ElementsAre("b"));
  wakes.clear();
  queue.EndAt(kStart + 2h);
  queue.Advance(kStart + 1h);
  EXPECT_THAT(called, IsEmpty());
  EXPECT_THAT(wakes.back(), 2h);
  queue.Advance(kStart + 2h);
  EXPECT_THAT(TakeCalled(), ElementsAre("a ended"));
  queue.Await(c);
  EXPECT_THAT(wakes.back(), 2h) << "which has passed";
  queue.Advance(kStart + 2h);
  EXPECT_THAT(TakeCalled(), ElementsAre("c ended"));
}

TEST_F(HeldRequestsTest, IsFullAtItsBound) {
  Named d{*this, "d"};
  for (Named* entry : {&a, &b, &c}) queue.Hold(*entry, kStart);
  EXPECT_FALSE(queue.full());
  queue.Hold(d, kStart);
  EXPECT_TRUE(queue.full());
  queue.Await(d);
  EXPECT_FALSE(queue.full()) << "those without a time have bounds elsewhere";
  EXPECT_TRUE(queue.may_fill());
  queue.Hold(d, base::Instant{0});
  EXPECT_FALSE(queue.full()) << "the store has answered it";
  EXPECT_TRUE(queue.may_fill());
  queue.Hold(d, kStart);
  EXPECT_TRUE(queue.full());
  queue.Release(d);
  EXPECT_FALSE(queue.full());
  EXPECT_FALSE(queue.may_fill());
}

}  // namespace held_requests_test
}  // namespace headgate::proxy
