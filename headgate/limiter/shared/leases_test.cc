// Answers about a leased bucket to which both the store and the leases of this instance contribute.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter::shared {
namespace leases_test {

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

TEST_F(SharedLeases, ADenialNamesTheMomentOfTheStore) {
  ASSERT_TRUE(Do(Operation::kTake, 100).allowed);
  const algorithm::Decision denied = Do(Operation::kTake, 1);
  ASSERT_FALSE(denied.allowed);
  EXPECT_EQ(settled.mode, Mode::kExact);
  EXPECT_EQ(denied.retry_after, 10ms);
  EXPECT_EQ(Do(Operation::kPeek, 1).retry_after, 10ms);
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
// use, too: only the requests that ask the store take from that for a moment.
TEST_F(SharedLeases, AGroupWithAKnownDenialTakesNothingFromTheOthers) {
  limit = Intern({.requests = 1000, .period = 1h});
  const store::LimitHandle own = Intern({.requests = 10, .period = 1h});
  constexpr uint64_t kOwn = 7;
  ASSERT_TRUE(Ask(kOwn, own, {}, 10));
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(Ask(kOwn, own, {}, 1));
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

// As one single bucket, whatever the limit.
TEST_F(SharedLeases, ABurstAtOneInstanceIsRefusedNothing) {
  uint64_t key = 1;
  for (const uint64_t requests : {3u, 10u, 30u, 100u, 1000u, 5000u}) {
    for (const auto algorithm :
         {algorithm::Algorithm::kTokenBucket, algorithm::Algorithm::kFixedWindow,
          algorithm::Algorithm::kSlidingWindowCounter}) {
      SCOPED_TRACE(requests);
      limit = Intern({.algorithm = algorithm, .requests = requests, .period = 24h});
      ++key;
      for (uint64_t left = requests; left-- > 0;) {
        ASSERT_TRUE(Do(Operation::kTake, 1, key).allowed) << left;
        ASSERT_EQ(settled.decision.remaining, left);
      }
      EXPECT_FALSE(Do(Operation::kTake, 1, key).allowed);
    }
  }
}

// ---- Requests that wait for one message.

class SharedWaiters : public SharedLeases {
 protected:
  struct Waiter {
    BatchEntry entry;
    std::unique_ptr<Pending> pending;
    const Settled& settled() const {
      return pending->settled().empty() ? entry.settled : pending->settled().front();
    }
  };

  // Decides a request for key 1, if not at once, when the store has answered.
  Waiter& Wait(uint64_t cost = 1) {
    Waiter& waiter = waiters.emplace_back();
    const size_t index = waiters.size() - 1;
    waiter.pending = std::make_unique<Pending>([this, index] { order.push_back(index); });
    waiter.entry = {.request = {.key = {1 * 0x9e3779b97f4a7c15, 1 * 0xc2b2ae3d27d4eb4f},
                                .limit = limit.get(),
                                .cost = cost},
                    .terms = fleet.default_terms()};
    fleet.Decide(
        {&waiter.entry, 1}, [](size_t, std::string& name) { name += "1"; }, waiter.pending.get(),
        now);
    return waiter;
  }

  std::deque<Waiter> waiters;
  std::vector<size_t> order;  // in which they were settled
};

TEST_F(SharedWaiters, ABurstCausesOneMessageAndIsDecidedInItsOrder) {
  limit = Intern({.requests = 1000, .period = 1h});
  ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  for (int i = 0; i < 20; ++i) Wait();
  EXPECT_EQ(shared.waiting(), 1u);
  shared.AnswerAll();
  for (size_t i = 0; i < waiters.size(); ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_TRUE(waiters[i].settled().decision.allowed);
  }
  EXPECT_EQ(waiters.back().settled().decision.remaining, 1000u - 21);
  EXPECT_EQ(waiters[1].settled().mode, Mode::kLeased);
}

// The lease that came with the first answer does not suffice: one of them asks again.
TEST_F(SharedWaiters, WhoeverFindsTooLittleAsksForTheOthersToo) {
  limit = Intern({.requests = 1000, .period = 1h});
  ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  for (int i = 0; i < 20; ++i) Wait(40);
  EXPECT_EQ(shared.waiting(), 1u);
  shared.AnswerOne();
  EXPECT_EQ(shared.waiting(), 1u);
  shared.AnswerAll();
  EXPECT_LT(shared.names().size(), 10u);
  for (const Waiter& waiter : waiters) EXPECT_TRUE(waiter.settled().decision.allowed);
  EXPECT_EQ(Do(Operation::kPeek, 0).remaining, 1000u - 1 - 20 * 40);
}

TEST_F(SharedWaiters, NoneIsDecidedByTheDenialOfAnother) {
  limit = Intern({.requests = 1000, .period = 1h});
  ASSERT_TRUE(Do(Operation::kTake, 500).allowed);
  Wait(600);
  Wait(500);
  EXPECT_EQ(shared.waiting(), 1u);
  shared.AnswerAll();
  EXPECT_FALSE(waiters[0].settled().decision.allowed);
  EXPECT_TRUE(waiters[1].settled().decision.allowed);
}

TEST_F(SharedWaiters, AFailedMessageLeavesAllToThePolicy) {
  limit = Intern({.requests = 1000, .period = 1h});
  ASSERT_TRUE(Do(Operation::kTake, 1).allowed);
  for (int i = 0; i < 5; ++i) Wait();
  shared.failure = absl::UnavailableError("gone");
  shared.AnswerAll();
  for (const Waiter& waiter : waiters) EXPECT_EQ(waiter.settled().mode, Mode::kLocal);
  EXPECT_EQ(shared.waiting(), 0u);
}

// The answer to the second request overtakes that to the first, and brings a lease. Then another
// instance takes the rest.
TEST_F(SharedWaiters, ALeasePaysForWhatTheStoreHasDeniedBesideIt) {
  limit = Intern({.requests = 1000, .period = 24h});
  SharedDecider other(shared, local, {});
  ASSERT_TRUE(AskLoop(other, 1, limit, {}, 800));
  Wait(60);
  Wait(60);
  ASSERT_EQ(shared.waiting(), 2u);
  shared.AnswerAt(1);
  EXPECT_TRUE(waiters[1].settled().decision.allowed);
  ASSERT_EQ(books.totals().held, 70u) << "half of the 140 that were left";
  ASSERT_FALSE(Begin(1, limit, {}, 70, other));
  shared.AnswerAt(1);
  ASSERT_TRUE(pending.settled().front().decision.allowed);
  shared.AnswerAll();
  EXPECT_TRUE(waiters[0].settled().decision.allowed);
  EXPECT_EQ(waiters[0].settled().mode, Mode::kExact);
  EXPECT_EQ(books.totals().held, 10u);
}

TEST_F(SharedWaiters, ADenialBesideALeaseStandsIfTheStoreFailsThen) {
  limit = Intern({.requests = 1000, .period = 24h});
  SharedDecider other(shared, local, {});
  ASSERT_TRUE(AskLoop(other, 1, limit, {}, 800));
  Wait(80);
  Wait(60);
  ASSERT_EQ(shared.waiting(), 2u);
  shared.AnswerAt(1);
  ASSERT_EQ(books.totals().held, 70u);
  shared.AnswerOne();  // denied: less than 80 are left, and held
  ASSERT_EQ(shared.waiting(), 1u);
  shared.failure = absl::UnavailableError("gone");
  shared.AnswerAll();
  EXPECT_FALSE(waiters[0].settled().decision.allowed);
  EXPECT_EQ(waiters[0].settled().mode, Mode::kExact);
}

// Each costs less than the one before, and more than is left. Whoever waited for all before it
// would be decided up to 200 times.
TEST_F(SharedWaiters, ACrowdWaitsForThreeMessagesAtMost) {
  constexpr uint64_t kCrowd = 200;
  limit = Intern({.requests = 1000, .period = 24h});
  ASSERT_TRUE(Do(Operation::kTake, 900).allowed);
  const size_t asked = shared.names().size();
  int decided_again = 0;
  for (uint64_t i = 0; i < kCrowd; ++i)
    Wait(300 - i).pending->TellResumed([&] { ++decided_again; });
  EXPECT_EQ(shared.waiting(), 1u);
  int round_trips = 0;
  for (; shared.waiting() > 0; ++round_trips) {
    for (size_t i = shared.waiting(); i > 0; --i) shared.AnswerOne();
  }
  for (const Waiter& waiter : waiters) EXPECT_FALSE(waiter.settled().decision.allowed);
  EXPECT_EQ(order.size(), kCrowd);
  EXPECT_EQ(round_trips, 3 + 1);
  EXPECT_LE(decided_again, 3 * static_cast<int>(kCrowd));
  EXPECT_LE(shared.names().size() - asked, kCrowd) << "one call for each";
}

}  // namespace leases_test
}  // namespace headgate::limiter::shared
