// Answers about a leased bucket to which both the store and the leases of this instance contribute.
#include <gtest/gtest.h>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter {
namespace {

using store::Operation;
using namespace std::chrono_literals;

class SharedLeases : public ::testing::Test, protected testing::DirectFleet {
 protected:
  algorithm::Decision Do(Operation what, uint64_t cost) {
    operation = what;
    Ask(1, limit, {}, cost);
    return settled.decision;
  }

  store::LimitHandle limit = Intern({.requests = 100, .period = 1s});
};

// The store answers 10 ms, but this instance asks it again only after 50 to 75 ms.
TEST_F(SharedLeases, AnExactDenialNamesTheEndOfThePause) {
  ASSERT_TRUE(Do(Operation::kTake, 100).allowed);
  const algorithm::Decision denied = Do(Operation::kTake, 1);
  ASSERT_FALSE(denied.allowed);
  EXPECT_EQ(settled.mode, Mode::kExact);
  EXPECT_GE(denied.retry_after, 50ms);
  EXPECT_LE(Do(Operation::kPeek, 1).retry_after, denied.retry_after);
  EXPECT_GE(settled.decision.retry_after, 50ms) << "an earlier request would be denied";
  now += denied.retry_after;
  EXPECT_TRUE(Do(Operation::kTake, 1).allowed);
}

// The refund goes back into the lease.
TEST_F(SharedLeases, ARefundOfWhatALeaseHasSpentNeedsNoMessage) {
  limit = Intern({.requests = 1000, .period = 1h});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  ASSERT_EQ(settled.mode, Mode::kLeased);
  const uint64_t remaining = settled.decision.remaining;
  const size_t asked = shared.names().size();
  EXPECT_TRUE(Do(Operation::kRefund, 1).allowed);
  EXPECT_EQ(settled.mode, Mode::kLeased);
  EXPECT_EQ(settled.decision.remaining, remaining + 1);
  EXPECT_EQ(shared.names().size(), asked);
}

}  // namespace
}  // namespace headgate::limiter
