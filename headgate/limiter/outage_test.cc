// Tests of the knowledge of an instance about shared buckets when their store stops answering.
#include "headgate/limiter/outage.h"

#include <gtest/gtest.h>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter {
namespace outage_test {

using namespace std::chrono_literals;

class Outage : public ::testing::Test, protected testing::DirectFleet {
 protected:
  store::LimitHandle limit =
      Intern({.requests = 10, .period = 1h, .burst = 7});  // exact: too small for leases
};

TEST_F(Outage, ALoopBeginsWithTheRestThatAnotherLoopWasTold) {
  SharedRests rests;
  SharedDecider first(shared, local, {.leases = &books, .rests = &rests, .loop = 0, .loops = 2});
  SharedDecider second(shared, local, {.leases = &books, .rests = &rests, .loop = 1, .loops = 2});
  EXPECT_TRUE(AskLoop(first, 1, limit, {}, 6));
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(AskLoop(second, 1, limit));
  EXPECT_EQ(settled.mode, Mode::kLocal);
  EXPECT_FALSE(AskLoop(second, 1, limit)) << "one of seven was left";
}

// The store may have counted the request, and probably has if the answer was only late.
TEST_F(Outage, ARequestWhoseCallMayHaveBeenExecutedIsNotOwed) {
  for (const absl::Status& failure :
       {absl::DeadlineExceededError("late"), absl::AbortedError("closed")}) {
    shared.failure = failure;
    EXPECT_TRUE(Ask(1, limit));
    EXPECT_EQ(settled.mode, Mode::kLocal);
    EXPECT_EQ(fleet.debts().owed.value(), 0u);
  }
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Ask(1, limit));
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
}

// If the lease was granted after all, it is returned completely.
TEST_F(Outage, ARequestWhoseLeaseMayHaveBeenGrantedIsOwed) {
  const store::LimitHandle leased = Intern({.requests = 1000, .period = 1h});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Ask(1, leased));
  shared.failure = absl::DeadlineExceededError("late");
  EXPECT_TRUE(Ask(1, leased));
  EXPECT_EQ(settled.mode, Mode::kLocal);
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
}

TEST(SharedRests, ReturnTheRestOnlyOnce) {
  SharedRests rests;
  const base::Hash128 key{1, 2};
  const base::BootTime now{1'000'000'000};
  EXPECT_EQ(rests.Take(key, now), std::nullopt);
  rests.OnAnswer(key, 5, now + 10s);
  EXPECT_EQ(rests.Take({1, 3}, now), std::nullopt);
  EXPECT_EQ(rests.Take(key, now), 5u);
  EXPECT_EQ(rests.Take(key, now), std::nullopt);
  rests.OnAnswer(key, 5, now + 10s);
  EXPECT_EQ(rests.Take(key, now + 10s), std::nullopt) << "the bucket has had time to refill";
}

}  // namespace outage_test
}  // namespace headgate::limiter
