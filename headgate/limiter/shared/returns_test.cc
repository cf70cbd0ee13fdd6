// The returns to the store when the process ends, and how long the process waits for them.
#include <gtest/gtest.h>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter::shared {
namespace returns_test {

using base::Instant;
using namespace std::chrono_literals;

class FleetReturns : public ::testing::Test, protected testing::DirectFleet {
 protected:
  // More than may be in flight at once.
  static constexpr uint64_t kMany = 3 * ReturnPace::kAtOnce;

  // Leases of this many keys.
  void Lease(uint64_t keys) {
    for (uint64_t key = 1; key <= keys; ++key) {
      for (int i = 0; i < 3; ++i) Ask(key, limit);
    }
    held = books.totals().held;
    ASSERT_GE(held, keys);
  }
  void Return() {
    fleet.ReturnLeases([this](uint64_t confirmed) {
      done = true;
      keys_confirmed = confirmed;
    });
  }

  store::LimitHandle limit = Intern({.requests = 1000, .period = 1h});
  uint64_t held = 0;
  bool done = false;
  uint64_t keys_confirmed = 0;
};

TEST_F(FleetReturns, CountTheReturnsThatTheStoreHasConfirmed) {
  Lease(1);
  Return();
  EXPECT_FALSE(done);
  EXPECT_EQ(books.totals().returned, 0u);
  shared.AnswerAll();
  EXPECT_TRUE(done);
  EXPECT_EQ(keys_confirmed, 1u);
  EXPECT_EQ(books.totals().held, 0u);
  EXPECT_EQ(books.totals().returned, held);
  EXPECT_EQ(fleet.next_wake(), base::BootTime{INT64_MAX});
}

TEST_F(FleetReturns, IncludeALeaseThatWasAskedForBefore) {
  Ask(1, limit);
  Begin(1, limit, {}, 1, fleet);
  Return();
  EXPECT_FALSE(done);
  shared.AnswerAll();
  EXPECT_TRUE(done);
  EXPECT_GT(books.totals().granted, 0u);
  EXPECT_EQ(books.totals().returned, books.totals().granted);
}

TEST_F(FleetReturns, EndAtOnceIfNothingIsHeld) {
  Return();
  EXPECT_TRUE(done);
}

TEST_F(FleetReturns, SendTheNextMessageWhenOneIsAnswered) {
  Lease(kMany);
  Return();
  EXPECT_EQ(shared.waiting(), ReturnPace::kAtOnce);
  shared.AnswerOne();
  EXPECT_EQ(shared.waiting(), ReturnPace::kAtOnce);
  shared.AnswerAll();
  EXPECT_TRUE(done);
  EXPECT_EQ(keys_confirmed, kMany);
  EXPECT_EQ(books.totals().returned, held);
}

TEST_F(FleetReturns, RepeatReturnsThatTheStoreDidNotAccept) {
  Lease(kMany);
  Return();
  shared.failure = absl::DeadlineExceededError("late");
  for (size_t i = 0; i < ReturnPace::kAtOnce; ++i) shared.AnswerOne();
  shared.failure = absl::OkStatus();
  EXPECT_EQ(shared.waiting(), 0u);
  EXPECT_EQ(fleet.next_wake(), shared.Now() + ReturnPace::kPauseAfterFailure);
  // A timer may be late, and the owner of the decider checks whether something is due.
  now += ReturnPace::kPauseAfterFailure + 1ms;
  ASSERT_LE(fleet.next_wake(), shared.Now());
  fleet.OnTime();
  EXPECT_EQ(shared.waiting(), ReturnPace::kAtOnce);
  EXPECT_GT(fleet.next_wake(), shared.Now()) << "the most messages are in flight";
  shared.AnswerAll();
  EXPECT_TRUE(done);
  // The manual store has accepted the first reports, although it did not answer.
  EXPECT_EQ(books.totals().returned, held);
}

TEST_F(FleetReturns, WaitAtMostOneTimeoutForAStoreThatIsDown) {
  Lease(kMany);
  shared.failure = absl::UnavailableError("gone");
  shared.at_once = true;
  const size_t asked = shared.names().size();
  const Instant began = now;
  Return();
  while (!done) {
    ASSERT_GT(fleet.next_wake(), shared.Now());
    now += fleet.next_wake() - shared.Now();
    fleet.OnTime();
  }
  EXPECT_EQ(now - began, ReturnPace::kTimeoutLeast);
  EXPECT_EQ(shared.names().size() - asked, 50u) << "one attempt each 10 ms";
  EXPECT_EQ(keys_confirmed, 0u);
  EXPECT_EQ(books.totals().returned, 0u);
  EXPECT_EQ(books.totals().held, held);
}

}  // namespace returns_test
}  // namespace headgate::limiter::shared
