// Answers about a leased bucket to which both the store and the leases of this instance contribute.
#include <gtest/gtest.h>

#include <array>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter {
namespace shared_leases_test {

using store::Operation;
using namespace std::chrono_literals;

class SharedLeases : public ::testing::Test, protected testing::DirectFleet {
 protected:
  algorithm::Decision Do(Operation what, uint64_t cost, uint64_t key = 1) {
    operation = what;
    Ask(key, limit, {}, cost);
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

// The store has given 100 requests, of which this instance holds a part.
TEST_F(SharedLeases, ALookCountsWhatThisInstanceHolds) {
  for (const auto algorithm :
       {algorithm::Algorithm::kTokenBucket, algorithm::Algorithm::kFixedWindow,
        algorithm::Algorithm::kSlidingWindowCounter}) {
    limit = Intern({.algorithm = algorithm, .requests = 100, .period = 24h});
    const uint64_t key = 10 + static_cast<uint64_t>(algorithm);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(Do(Operation::kTake, 1, key).allowed);
    const uint64_t held = books.totals().held;
    ASSERT_GT(held, 1u);
    ASSERT_LT(held, 60u);
    EXPECT_EQ(Do(Operation::kPeek, 0, key).remaining, 70u);
    EXPECT_EQ(settled.mode, Mode::kExact);
    EXPECT_EQ(Do(Operation::kTake, 0, key).remaining, 70u);
    const algorithm::Decision look = Do(Operation::kPeek, 60, key);
    EXPECT_TRUE(look.allowed) << "the store would deny it";
    EXPECT_EQ(look.remaining, 70u);
    EXPECT_EQ(look.retry_after, 0ns);
    EXPECT_FALSE(Do(Operation::kPeek, 71, key).allowed);
    EXPECT_EQ(settled.decision.remaining, 70u);
    EXPECT_FALSE(Do(Operation::kPeek, 101, key).allowed);
    EXPECT_TRUE(settled.decision.never_fits());
    EXPECT_EQ(books.totals().held, held) << "a look takes nothing";
    EXPECT_TRUE(Do(Operation::kTake, 60, key).allowed);
    Do(Operation::kReset, 0, key);
  }
}

// One more request accrues in 864 s: what is missing beyond what is held takes this long.
TEST_F(SharedLeases, ADeniedLookWaitsOnlyForWhatIsMissing) {
  limit = Intern({.requests = 100, .period = 24h});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  const algorithm::Decision denied = Do(Operation::kPeek, 72);
  ASSERT_FALSE(denied.allowed);
  EXPECT_LE(denied.retry_after, 2 * 864s + 1ns);
  EXPECT_GE(denied.retry_after, 2 * 864s - 1s);
  EXPECT_LE(denied.reset_after, 30 * 864s + 1ns);
  EXPECT_GE(denied.reset_after, 30 * 864s - 1s);
}

// The lease pays it, whether or not the store can be asked.
TEST_F(SharedLeases, ALookThatALeaseCanAnswerNeedsNoMessage) {
  limit = Intern({.requests = 1000, .period = 1h});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  ASSERT_EQ(settled.mode, Mode::kLeased);
  const uint64_t remaining = settled.decision.remaining;
  const uint64_t held = books.totals().held;
  const size_t asked = shared.names().size();
  EXPECT_TRUE(Do(Operation::kPeek, held).allowed);
  EXPECT_EQ(settled.mode, Mode::kLeased);
  EXPECT_EQ(settled.decision.remaining, remaining);
  EXPECT_EQ(shared.names().size(), asked);
  EXPECT_EQ(books.totals().held, held);
  EXPECT_TRUE(Do(Operation::kPeek, held + 1).allowed);
  EXPECT_EQ(shared.names().size(), asked + 1);
}

// A client whose own limit denies it asks again and again, all or nothing with a limit that others
// use, too: only the first request of each pause takes from that for a moment.
TEST_F(SharedLeases, AGroupWithAKnownDenialTakesNothingFromTheOthers) {
  limit = Intern({.requests = 1000, .period = 1h});
  const store::LimitHandle own = Intern({.requests = 10, .period = 1h});
  constexpr uint64_t kOwn = 7;
  ASSERT_FALSE(Ask(kOwn, own, {}, 10) && Ask(kOwn, own, {}, 1));
  std::array<BatchEntry, 2> batch{
      BatchEntry{.request = {.key = {1 * 0x9e3779b97f4a7c15, 1 * 0xc2b2ae3d27d4eb4f},
                             .limit = limit.get(),
                             .cost = 600},
                 .terms = fleet.default_terms()},
      BatchEntry{.request = {.key = {kOwn * 0x9e3779b97f4a7c15, kOwn * 0xc2b2ae3d27d4eb4f},
                             .limit = own.get(),
                             .cost = 1,
                             .joined = store::Joined::kOtherRule},
                 .terms = fleet.default_terms()}};
  const auto name = [](size_t index, std::string& out) { out += index == 0 ? "1" : "7"; };
  Pending group{[] {}};
  EXPECT_FALSE(fleet.Decide(batch, name, &group, now));
  while (shared.waiting() > 0) {
    EXPECT_NE(shared.oldest().operation, Operation::kTake) << shared.oldest().name;
    shared.AnswerOne();
  }
  EXPECT_FALSE(group.settled()[1].decision.allowed);
}

// The store grants half of what is left, for other instances. The instance asks for half of the
// rest so often that it has to pause before the bucket is empty.
TEST_F(SharedLeases, ABurstPausesBeforeTheBucketIsEmptyAndThenGetsTheRest) {
  uint64_t key = 1;
  for (const uint64_t requests : {100u, 1000u, 10'000u, 100'000u}) {
    for (const auto algorithm :
         {algorithm::Algorithm::kTokenBucket, algorithm::Algorithm::kSlidingWindowCounter}) {
      limit = Intern({.algorithm = algorithm, .requests = requests, .period = 1h});
      ++key;
      uint64_t passed = 0;
      while (Do(Operation::kTake, 1, key).allowed) ++passed;
      EXPECT_GE(passed * 10, requests * (requests <= 1000 ? 9 : 7)) << requests;
      const base::Instant began = now;
      while (passed < requests) {
        if (Do(Operation::kTake, 1, key).allowed) {
          ++passed;
        } else {
          ASSERT_LE(settled.decision.retry_after, 75ms) << passed;
          now += settled.decision.retry_after;
        }
      }
      EXPECT_LE(now - began, 1s) << requests;
    }
  }
}

}  // namespace shared_leases_test
}  // namespace headgate::limiter
