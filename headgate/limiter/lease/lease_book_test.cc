#include "headgate/limiter/lease/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter::lease {
namespace lease_book_test {

// Every lease is at most this one.
constexpr uint64_t kAnyLease = ~uint64_t{0};

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;
using namespace std::chrono_literals;

using LeaseBookTest = testing::LeaseDialogue;

TEST_F(LeaseBookTest, AColdKeyIsAskedOfTheStoreEachTime) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, Allowed(999));
    at += 5s;  // fewer than one while a lease lives
  }
}

TEST_F(LeaseBookTest, TheSecondRequestAsksForALeaseToo) {
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_TRUE(Exact(1, Allowed(999)));
  EXPECT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 40 or 2 of a part of 2")
      << "two in 100 ms are 40 in 2 s";
  EXPECT_EQ(Grant(1, 31, 967), "");
  EXPECT_EQ(Says(), "allowed, 997 left") << "30 here, 967 there";
  EXPECT_EQ(Says(), "allowed, 996 left");
}

TEST_F(LeaseBookTest, RequestsThatComeMeanwhileAwaitTheSameAnswer) {
  Says();
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #1 of k, taking 1"));
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Says(7), "await the answer");
  EXPECT_EQ(SaysAgain(), "await the answer") << "nobody has answered";
  EXPECT_EQ(Grant(1, 4, 50), "");
  EXPECT_EQ(SaysAgain(), "allowed, 53 left");
  EXPECT_THAT(SaysAgain(7), StartsWith("await the answer; ask #2 of k, taking 7"))
      << "more than is held";
  EXPECT_EQ(SaysAgain(), "await the answer");
}

// If the store grants no lease, it has not denied the other requests.
TEST_F(LeaseBookTest, TheNextOfThoseThatWaitAsksIfNothingWasGranted) {
  Says();
  Says();
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Grant(1, 0, 64), "");
  EXPECT_THAT(SaysAgain(), StartsWith("await the answer; ask #2 of k, taking 1"));
  EXPECT_EQ(SaysAgain(), "await the answer");
}

TEST_F(LeaseBookTest, EachOfThoseThatWaitAsksTheStoreIfFewAreLeft) {
  Says();
  Says();
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Grant(1, 0, 63), "");
  EXPECT_EQ(SaysAgain(), "ask the store");
  EXPECT_EQ(SaysAgain(), "ask the store");
}

TEST_F(LeaseBookTest, AnAnswerForAnotherLimitDecidesNothing) {
  Says();
  Says();
  EXPECT_EQ(Grant(1, 4), "");
  limit = Intern({.requests = 2000, .period = 10s});
  EXPECT_EQ(SaysAgain(), "ask the store");
}

TEST_F(LeaseBookTest, ARequestForMoreThanIsHeldReturnsAllThatIsHeld) {
  Lease(31);
  EXPECT_EQ(Says(5), "allowed, 526 left");
  EXPECT_THAT(Says(30), StartsWith("await the answer; ask #2 of k, taking 30, for "));
  EXPECT_EQ(Held(), 0u) << "it is given up from the moment of that message";
  EXPECT_EQ(Says(), "await the answer");
}

TEST_F(LeaseBookTest, TheMessageReportsWhatWasSpent) {
  Lease(31);
  Says(5);
  EXPECT_THAT(Says(30), EndsWith("; #1 spent 5, returned"));
}

// The store counts as taken what this node holds, or is about to be granted.
TEST_F(LeaseBookTest, ADenialBesideALeaseIsDecidedAgain) {
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #1"));
  EXPECT_FALSE(Exact(1, Denied(10ms))) << "a message is under way";
  EXPECT_EQ(Grant(1, 4, 0), "");
  EXPECT_FALSE(Exact(1, Denied(10ms))) << "the lease can pay it";
  EXPECT_EQ(SaysAgain(), "allowed, 3 left");
  EXPECT_TRUE(Exact(1, Allowed(7))) << "the store has allowed it";
  EXPECT_THAT(SaysAgain(), StartsWith("allowed, 9 left")) << "2 here, 7 there";
}

TEST_F(LeaseBookTest, ADenialWithoutALeaseIsFinal) {
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_TRUE(Exact(1, Denied(10ms)));
}

// Our clock has missed a pause: neither what is held nor what has been asked for is spent.
TEST_F(LeaseBookTest, DroppingEverythingAlsoDropsLeasesThatWereAskedFor) {
  Lease(4);
  EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_EQ(book.counters().held(), 3u);
  book.DropAll();
  EXPECT_EQ(book.counters().held(), 0u);
  EXPECT_EQ(book.counters().expired_unspent, 3u);
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #2 of k")) << "and anew";
  book.DropAll();
  EXPECT_EQ(Grant(2, 10), "") << "it was asked for before";
  EXPECT_EQ(book.counters().held(), 0u);
}

TEST_F(LeaseBookTest, EachGrantedRequestIsSpentReturnedLostOrHeld) {
  const LeaseCounters& counters = book.counters();
  Lease(50);
  EXPECT_EQ(Says(10), "allowed, 540 left");
  EXPECT_EQ(counters.granted, 50u);
  EXPECT_EQ(counters.spent, 10u);
  EXPECT_EQ(counters.held(), 40u);
  EXPECT_EQ(book.GiveBack(kKey, 3, kAnyLease, now()), 3u);
  EXPECT_EQ(counters.held(), 43u);
  at = 100ms;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k; #1 spent 7, returned"));
  EXPECT_EQ(counters.held(), 43u) << "not before the store has heard of it";
  EXPECT_EQ(Grant(2, 0), "");
  EXPECT_EQ(counters.returned, 43u);
  EXPECT_EQ(counters.held(), 0u);
}

TEST_F(LeaseBookTest, ALeaseIsSpentUpToItsDeadlineAndNotAfter) {
  Lease(50);
  at = 1900ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("allowed, 549 left"));
}

TEST_F(LeaseBookTest, NothingIsSpentFromTheDeadlineOn) {
  Lease(50);
  at = 1900ms;
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #2 of k, taking 1"));
}

TEST_F(LeaseBookTest, TheLifeOfALeaseBeginsWhenItIsAskedFor) {
  Says();
  Says();
  at = 1600ms;
  EXPECT_EQ(Grant(1, 50), "");
  at = 1900ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("allowed, 549 left"));
}

TEST_F(LeaseBookTest, AGrantAfterItsDeadlineIsNotSpentButReturned) {
  Says();
  Says();
  at = 1900ms;
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_EQ(book.counters().late_grants, 1u);
  EXPECT_THAT(Says(), EndsWith("; #1 spent 0, returned"));
}

TEST_F(LeaseBookTest, ALeaseOfAWindowEndsWithTheWindow) {
  Says();
  Says();
  EXPECT_EQ(Grant(1, 50, 0, 100ms), "");
  at = 95ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("allowed"));
  at = 95ms;
  EXPECT_THAT(Says(), StartsWith("await the answer"));
}

TEST_F(LeaseBookTest, ARepeatedOrUnknownAnswerChangesNothing) {
  Lease(4, 0);
  EXPECT_EQ(Grant(1, 4), "");
  EXPECT_EQ(Grant(77, 4), "");
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_THAT(Says(), StartsWith("await the answer"));
  EXPECT_EQ(book.counters().late_grants, 2u);
}

TEST_F(LeaseBookTest, RequestsAreTakenFromSeveralLeases) {
  Lease(10);
  EXPECT_THAT(Says(6), StartsWith("allowed, 504 left; ask #2 of k, for "));
  EXPECT_EQ(Grant(2, 10), "");
  EXPECT_THAT(Says(8), StartsWith("allowed, 506 left"));
  EXPECT_EQ(Held(), 6u);
}

TEST_F(LeaseBookTest, RemainingLeavesOutALeaseThatMayHaveBeenGranted) {
  Lease(4);
  EXPECT_EQ(Says(), "allowed, 503 left");
  EXPECT_EQ(Says(), "allowed, 502 left; ask #2 of k, for 80 or 4 of a part of 2; #1 spent 2");
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("no answer")), "");
  EXPECT_EQ(Says(), "allowed, 421 left") << "80 may have been granted";
}

TEST_F(LeaseBookTest, AResetForgetsTheLeases) {
  Lease(50);
  book.OnReset(kKey);
  EXPECT_EQ(Says(), "await the answer; ask #2 of k, taking 1, for 60 or 3 of a part of 2")
      << "and no word of the first";
}

TEST_F(LeaseBookTest, AfterAChargeThatOverdrawsTheBucketTheNextRequestReturnsTheLeases) {
  Lease(50);
  EXPECT_EQ(Says(10), "allowed, 540 left");
  book.OnOverdrawn(kKey, now());
  EXPECT_EQ(Says(),
            "await the answer; ask #2 of k, taking 1, for 260 or 13 of a part of 2; "
            "#1 spent 10, returned");
}

TEST_F(LeaseBookTest, ARefundGoesBackIntoTheLeaseUnlessItWasReported) {
  Lease(50);
  EXPECT_EQ(Says(10), "allowed, 540 left");
  EXPECT_EQ(book.GiveBack(kKey, 4, kAnyLease, now()), 4u);
  EXPECT_THAT(Says(20), EndsWith("; #1 spent 26"));
  EXPECT_EQ(book.GiveBack(kKey, 4, kAnyLease, now()), 0u);
}

// A window may have ended with the lease, and a refund lowers the window of its own time.
TEST_F(LeaseBookTest, ARefundAfterTheEndOfALeaseIsForTheStore) {
  Lease(50);
  EXPECT_EQ(Says(10), "allowed, 540 left");
  algorithm::Decision decision;
  EXPECT_EQ(book.Refund(kKey, *limit, 4, decision, now()), 4u);
  at += 2s;
  EXPECT_EQ(book.Refund(kKey, *limit, 4, decision, now()), 0u);
  EXPECT_EQ(book.GiveBack(kKey, 4, kAnyLease, now()), 4u) << "an undo knows the time of the take";
}

TEST_F(LeaseBookTest, AFullTableEvictsKeysWithoutLeases) {
  Lease(50);
  for (uint64_t i = 0; i < 1000; ++i) Take(1, {i << 8 | 7, i});
  EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_LE(book.keys_followed(), 64u);
  EXPECT_GT(book.keys_evicted(), 900u);
}

}  // namespace lease_book_test
}  // namespace headgate::limiter::lease
