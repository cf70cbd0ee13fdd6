#include "headgate/limiter/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter {
namespace lease_book_test {

using ::testing::ElementsAre;
using ::testing::StartsWith;
using namespace std::chrono_literals;

using LeaseBookTest = testing::LeaseDialogue;

TEST_F(LeaseBookTest, AColdKeyIsAskedOfTheStoreEachTime) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    at += 500ms;  // two within the second that a lease would be for
  }
}

// Our clock has missed a pause: neither what is held nor what has been asked for is spent.
TEST_F(LeaseBookTest, DroppingEverythingAlsoDropsLeasesThatWereAskedFor) {
  Lease(4);
  EXPECT_THAT(Says(), StartsWith("allowed"));
  const auto held = book.counters().held();
  EXPECT_GT(held, 0u);
  book.DropAll();
  EXPECT_EQ(book.counters().held(), 0u);
  EXPECT_EQ(book.counters().expired_unspent, held);
  ASSERT_THAT(Says(), ::testing::HasSubstr("ask #2 of k")) << "and anew";
  book.DropAll();
  EXPECT_EQ(Grant(2, 10), "") << "it was asked for before";
  EXPECT_EQ(book.counters().held(), 0u);
}

TEST_F(LeaseBookTest, AHotKeyAsksForALeaseAndSpendsIt) {
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 4 (at least 1)");
  EXPECT_EQ(Says(), "ask the store") << "one ask is enough";
  at = 1ms;
  EXPECT_EQ(Grant(1, 4, 50), "");
  EXPECT_EQ(Says(), "allowed, 53 left") << "3 here, 50 there";
  EXPECT_EQ(Says(), "allowed, 52 left; ask #2 of k for 7 (at least 1); #1 spent 2")
      << "half is spent";
  EXPECT_EQ(Says(), "allowed, 51 left");
  EXPECT_EQ(Says(), "allowed, 50 left");
  EXPECT_EQ(Says(), "ask the store")
      << "nothing is left here, and nobody said that there is nothing there";
  EXPECT_EQ(Grant(2, 7, 40), "");
  EXPECT_EQ(Says(3), "allowed, 44 left");
  EXPECT_EQ(Says(),
            "allowed, 43 left; ask #3 of k for 14 (at least 1); #2 spent 4; #1 spent 4, returned");
}

TEST_F(LeaseBookTest, ARequestIsDecidedByTheLeaseThatItAwaited) {
  for (int i = 0; i < 3; ++i) Take();
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 4 (at least 1)");
  at = 1ms;
  EXPECT_EQ(SaysAgain(), "ask the store") << "nobody has answered";
  EXPECT_EQ(Grant(1, 4, 50), "");
  EXPECT_EQ(SaysAgain(), "allowed, 53 left");
  EXPECT_EQ(SaysAgain(4), "ask the store") << "nor does it wait again";
}

TEST_F(LeaseBookTest, ARequestIsDeniedByTheRefusalThatItAwaited) {
  for (int i = 0; i < 4; ++i) Take();
  at = 1ms;
  EXPECT_EQ(Refuse(1, 80ms), "");
  EXPECT_EQ(SaysAgain(), "denied for 80ms");
}

TEST_F(LeaseBookTest, AnAwaitedLeaseOfAnotherLimitDecidesNothing) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Grant(1, 4), "");
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(SaysAgain(), "ask the store");
}

TEST_F(LeaseBookTest, EachGrantedRequestIsSpentReturnedLostOrHeld) {
  const LeaseCounters& counters = book.counters();
  Lease(50);
  Take(10);
  EXPECT_EQ(counters.granted, 50u);
  EXPECT_EQ(counters.spent, 10u);
  EXPECT_EQ(counters.held(), 40u);
  EXPECT_EQ(book.GiveBack(kKey, 3, now()), 3u);
  EXPECT_EQ(counters.held(), 43u);
  at = 1s;
  EXPECT_THAT(Says(), StartsWith("allowed, 42 left; ask #2"));
  EXPECT_EQ(Grant(2, 20), "");
  EXPECT_EQ(counters.held(), 62u);
  at = 1900ms;
  Take();
  EXPECT_EQ(counters.expired_unspent, 42u);
  EXPECT_EQ(counters.held(), 19u);
  at = 2500ms;
  EXPECT_THAT(Time(), ElementsAre("ask #3 of k; #2 spent 1, returned"));
  EXPECT_EQ(counters.held(), 19u) << "not before the store has heard of it";
  EXPECT_EQ(Grant(3, 0), "");
  EXPECT_EQ(counters.returned, 19u);
  EXPECT_EQ(counters.held(), 0u);
}

TEST_F(LeaseBookTest, ALeaseIsSpentUpToItsDeadlineAndNotAfter) {
  Lease(50);
  at = 1s;
  EXPECT_THAT(Says(), StartsWith("allowed, 49 left; ask #2"));
  at = 1900ms - 1ns;
  EXPECT_EQ(Says(), "allowed, 48 left");
  at = 1900ms;
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(book.counters().expired_unspent, 48u);
}

TEST_F(LeaseBookTest, TheLifeOfALeaseBeginsWhenItIsAskedFor) {
  for (int i = 0; i < 4; ++i) Take();
  at = 1800ms;
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 49 left"));
  at = 1900ms;
  EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseBookTest, AGrantAfterItsDeadlineIsDropped) {
  for (int i = 0; i < 4; ++i) Take();
  at = 1900ms;
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
  EXPECT_EQ(book.counters().late_grants, 1u);
}

TEST_F(LeaseBookTest, ALeaseOfAWindowEndsWithTheWindow) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Grant(1, 50, 0, 100ms), "");
  at = 95ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("allowed"));
  at = 95ms;
  EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseBookTest, ARepeatedOrUnknownAnswerChangesNothing) {
  Lease(4);
  EXPECT_EQ(Grant(1, 4), "");
  EXPECT_EQ(Grant(77, 4), "");
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(book.counters().late_grants, 2u);
}

TEST_F(LeaseBookTest, RequestsAreTakenFromSeveralLeases) {
  Lease(10);
  EXPECT_EQ(Says(6), "allowed, 4 left; ask #2 of k for 10 (at least 6); #1 spent 6");
  EXPECT_EQ(Grant(2, 10), "");
  EXPECT_EQ(Says(8), "allowed, 6 left");
  EXPECT_EQ(
      Says(7),
      "await a lease; ask #3 of k for 25 (at least 7); #2 spent 4, returned; #1 spent 10, returned")
      << "more than there is here: together with what is there it may be enough";
}

TEST_F(LeaseBookTest, RemainingLeavesOutALeaseThatMayHaveBeenGranted) {
  Lease(4);
  Exact(1, {.allowed = true, .limit = 100, .remaining = 50, .reset_after = 500ms});
  EXPECT_EQ(Says(), "allowed, 53 left");
  EXPECT_THAT(Says(), StartsWith("allowed, 52 left; ask #2 of k for 6"));
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("no answer")), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 45 left"));
}

TEST_F(LeaseBookTest, AResetForgetsTheLeases) {
  Lease(50);
  book.OnReset(kKey);
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2 of k for 5 (at least 1)"))
      << "and no word of the first";
}

TEST_F(LeaseBookTest, ARefundGoesBackIntoTheLeaseUnlessItWasReported) {
  Lease(50);
  Take(10);
  EXPECT_EQ(book.GiveBack(kKey, 4, now()), 4u);
  EXPECT_EQ(Says(20), "allowed, 24 left; ask #2 of k for 34 (at least 20); #1 spent 26");
  EXPECT_EQ(book.GiveBack(kKey, 4, now()), 0u);
}

TEST_F(LeaseBookTest, AFullTableEvictsKeysWithoutLeases) {
  Lease(50);
  for (uint64_t i = 0; i < 1000; ++i) Take(1, {i << 8 | 7, i});
  EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_LE(book.keys_followed(), 64u);
  EXPECT_GT(book.keys_evicted(), 900u);
}

}  // namespace lease_book_test
}  // namespace headgate::limiter
