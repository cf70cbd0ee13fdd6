// How leases go back to the store: idle ones, ending ones, uncertain ones, late ones, and all of
// them at the end of the process.
#include "headgate/limiter/lease/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter::lease {
namespace lease_book_returns_test {

using base::BootTime;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class LeaseReturnsTest : public testing::LeaseDialogue {
 protected:
  // Follows the clock until the book sends something.
  std::vector<std::string> Next() {
    std::vector<std::string> said;
    while (said.empty() && book.next_wake() != BootTime{INT64_MAX}) {
      at = book.next_wake() - now() + at;
      said = Time();
    }
    return said;
  }
};

TEST_F(LeaseReturnsTest, ALeaseThatMayHaveBeenGrantedIsReturnedUnspent) {
  Says();
  Says();
  at = 10ms;
  EXPECT_EQ(Fail(1, absl::DeadlineExceededError("no answer")), "");
  at = 11ms;
  EXPECT_EQ(Grant(1, 50), "") << "too late";
  EXPECT_EQ(Says(), "await the answer; ask #2 of k, taking 1; #1 spent 0, returned")
      << "no lease is asked for so soon";
}

TEST_F(LeaseReturnsTest, AnAskThatWasNotExecutedLeavesNothingToReturn) {
  Says();
  Says();
  EXPECT_EQ(Fail(1, absl::UnavailableError("away")), "");
  EXPECT_EQ(book.next_wake(), BootTime{INT64_MAX});
  EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseReturnsTest, AfterAFailureTheNextLeaseIsAskedForAfterAPause) {
  Says();
  Says();
  EXPECT_EQ(Fail(1, absl::UnavailableError("away")), "");
  at = 20ms - 1ns;
  EXPECT_EQ(Says(), "ask the store");
  at = 20ms;
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #2 of k, taking 1, for 80"));
}

TEST_F(LeaseReturnsTest, ALostReportIsRepeated) {
  Lease(4);
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("no answer")), "");
  EXPECT_THAT(Says(), EndsWith("; #1 spent 4, returned; #2 spent 0, returned"));
  EXPECT_EQ(Grant(3, 9), "");
  EXPECT_THAT(Says(9), StartsWith("allowed"));
  EXPECT_THAT(Says(), EndsWith("; #3 spent 9, returned")) << "what was told is over";
}

// It was granted to be spent within about 100 ms.
TEST_F(LeaseReturnsTest, AnIdleLeaseIsReturnedAfter100ms) {
  Lease(50);
  Says();
  EXPECT_THAT(Next(), ElementsAre("ask #2 of k; #1 spent 1, returned"));
  EXPECT_GE(at, 100ms);
  EXPECT_LE(at, 200ms) << "looks are 50 ms apart";
  EXPECT_EQ(Held(), 0u) << "it is given up from the moment of that message";
  EXPECT_EQ(Says(), "await the answer");
  EXPECT_EQ(Grant(2, 0, 549), "");
  at += 200ms;
  EXPECT_THAT(Time(), IsEmpty());
  EXPECT_EQ(book.next_wake(), BootTime{INT64_MAX}) << "nothing is held";
}

TEST_F(LeaseReturnsTest, ABriefLeaseInUseIsNotReturned) {
  Lease(100);
  for (; at < 1500ms; at += 50ms) {
    Take();
    for (const std::string& said : Time()) ADD_FAILURE() << said << " at " << at / 1ms;
  }
}

// 15 of 500 are missed by nobody.
TEST_F(LeaseReturnsTest, ASmallLeaseIsKeptUntilItsEnd) {
  Lease(15);
  EXPECT_EQ(Says(), "allowed, 514 left");
  for (at = 50ms; at <= 1700ms; at += 50ms) EXPECT_THAT(Time(), IsEmpty()) << at / 1ms;
}

TEST_F(LeaseReturnsTest, ALeaseThatIsNotSmallIsReturned) {
  Lease(15, 479);
  EXPECT_THAT(Next(), ElementsAre("ask #2 of k; #1 spent 0, returned"))
      << "15 of 479 are more than one of 32";
  EXPECT_LE(at, 200ms);
}

TEST_F(LeaseReturnsTest, TheReturnAtTheEndBringsTheNextLeaseIfTheKeyIsStillUsed) {
  Lease(15);
  for (at = 500ms; at <= 1500ms; at += 500ms) EXPECT_THAT(Says(), StartsWith("allowed"));
  at = 1500ms;
  const std::vector<std::string> said = Next();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], StartsWith("ask #2 of k, for "));
  EXPECT_THAT(said[0], EndsWith("; #1 spent 3, returned"));
  EXPECT_LT(at, 1900ms);
}

TEST_F(LeaseReturnsTest, ALeaseInUseIsRenewedBeforeItEndsByARequest) {
  Lease(15);
  at = 1600ms;
  EXPECT_EQ(Says(), "allowed, 514 left") << "too early for the next";
  // The last 250 ms, and for lease 1 of 8 an eighth of the 125 ms before.
  at = 1900ms - 250ms - 15625us;
  EXPECT_THAT(Says(), StartsWith("allowed, 513 left; ask #2 of k, for ")) << "nobody waits for it";
}

TEST_F(LeaseReturnsTest, ALeaseThatEndsSoonIsReplaced) {
  Lease(15);
  at = 1700ms;
  EXPECT_THAT(Says(), EndsWith("; #1 spent 1, returned"));
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LeaseReturnsTest, AtHalfALeaseIsAddedTo) {
  Lease(30);
  EXPECT_EQ(Says(14), "allowed, 516 left");
  EXPECT_EQ(Says(), "allowed, 515 left; ask #2 of k, for 340 or 17 of a part of 2; #1 spent 15");
  EXPECT_EQ(Held(), 15u);
  EXPECT_EQ(Says(), "allowed, 514 left") << "one message is enough";
  EXPECT_EQ(Grant(2, 12), "");
  EXPECT_EQ(Held(), 26u);
}

// Near exhaustion all of what is held goes back when the store is asked.
TEST_F(LeaseReturnsTest, NearExhaustionALeaseIsNotRenewedButUsedUpAndReported) {
  Lease(4, 3);
  for (int i = 3; i >= 0; --i) EXPECT_EQ(Says(), "allowed, " + std::to_string(i + 3) + " left");
  EXPECT_THAT(Next(), ElementsAre("ask #2 of k; #1 spent 4, returned"));
  EXPECT_GE(at, 100ms);
  EXPECT_LE(at, 200ms);
}

// A small lease is not looked at before its end.
TEST_F(LeaseReturnsTest, AUsedUpSmallLeaseIsReportedSoon) {
  Lease(15);
  EXPECT_THAT(Says(8), StartsWith("allowed, 507 left; ask #2 of k, for "));
  EXPECT_EQ(Fail(2, absl::UnavailableError("away")), "");
  EXPECT_EQ(Says(7), "allowed, 500 left") << "no lease is asked for so soon";
  EXPECT_THAT(Next(), ElementsAre("ask #3 of k; #1 spent 15, returned"));
  EXPECT_LE(at, 200ms);
}

TEST_F(LeaseReturnsTest, AUsedUpLeaseIsReportedByTheNextMessage) {
  Lease(4, 3);
  for (int i = 0; i < 4; ++i) Says();
  EXPECT_THAT(Says(), EndsWith("; #1 spent 4, returned"));
}

// The store has counted all of it as spent, and gives back what was not.
TEST_F(LeaseReturnsTest, ALeaseIsReportedAfterItsDeadline) {
  Lease(50);
  Says(3);
  at = 4s;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k; #1 spent 3, returned"));
}

TEST_F(LeaseReturnsTest, ALateReportThatFailsIsRepeatedAsLongAsItCanMatter) {
  Lease(50);
  for (at = 4s; at < 11s; at += 1s) {
    EXPECT_THAT(Time(), ElementsAre(HasSubstr("#1 spent 0, returned"))) << at / 1ms;
    EXPECT_EQ(Fail(static_cast<uint64_t>(at / 1s) - 2, absl::UnavailableError("gone")), "");
  }
  // The bucket is full 10 s after the end of the lease.
  at = 11900ms;
  EXPECT_THAT(Time(), IsEmpty());
  EXPECT_EQ(book.counters().expired_unspent, 50u);
  EXPECT_EQ(book.next_wake(), BootTime{INT64_MAX});
}

TEST_F(LeaseReturnsTest, ASlidingCounterGivesBackForTwoWindows) {
  limit = Intern(
      {.algorithm = algorithm::Algorithm::kSlidingWindowCounter, .requests = 1000, .period = 10s});
  Lease(50);
  at = 21899ms;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k; #1 spent 0, returned"));
}

TEST_F(LeaseReturnsTest, ClosingReturnsAllLeases) {
  Lease(50);
  Says(7);
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 7, returned");
  EXPECT_EQ(Return(), "") << "once";
  EXPECT_EQ(book.counters().returned, 0u) << "the store has not said so";
  EXPECT_EQ(Grant(2, 0), "");
  EXPECT_EQ(book.counters().returned, 43u);
  EXPECT_EQ(Return(), "");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseReturnsTest, AFailedReturnIsRepeated) {
  Lease(50);
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("late")), "");
  EXPECT_EQ(Return(), "ask #3 of k; #1 spent 0, returned");
  EXPECT_EQ(Grant(3, 0), "");
  EXPECT_EQ(Return(), "");
  EXPECT_EQ(book.counters().returned, 50u);
}

TEST_F(LeaseReturnsTest, AGrantThatArrivesAfterClosingIsReturnedAtOnce) {
  Says();
  Says();
  book.Close();
  EXPECT_EQ(Return(), "");
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
}

TEST_F(LeaseReturnsTest, AfterAChangeOfTheLimitALeaseIsReturnedAndTheKeyExactForOneTtl) {
  Lease(50);
  limit = Intern({.requests = 2000, .period = 10s});
  EXPECT_EQ(Says(), "ask the store; ask #2 of k; #1 spent 0, returned");
  EXPECT_EQ(Grant(2, 0), "");
  for (; at < 2s; at += 100ms) EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("await the answer; ask #3 of k, taking 1, for"));
}

TEST_F(LeaseReturnsTest, ALeaseThatWasAskedForUnderAnotherLimitIsReturned) {
  Says();
  Says();
  limit = Intern({.requests = 2000, .period = 10s});
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Grant(1, 50), "ask #2 of k; #1 spent 0, returned");
}

}  // namespace lease_book_returns_test
}  // namespace headgate::limiter::lease
