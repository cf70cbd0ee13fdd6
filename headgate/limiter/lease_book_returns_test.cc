// How leases go back to the store: idle ones, ending ones, uncertain ones, and all of them at the
// end.
#include "headgate/limiter/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter {
namespace lease_book_returns_test {

using base::BootTime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::chrono_literals;

using LeaseReturnsTest = testing::LeaseDialogue;

TEST_F(LeaseReturnsTest, ALeaseThatMayHaveBeenGrantedIsReturnedUnspent) {
  for (int i = 0; i < 4; ++i) Take();
  at = 10ms;
  EXPECT_EQ(Fail(1, absl::DeadlineExceededError("no answer")), "");
  at = 11ms;
  EXPECT_EQ(Grant(1, 50), "") << "too late";
  EXPECT_EQ(Says(), "ask the store") << "not asked again at once";
  at = 60ms;
  EXPECT_EQ(Says(), "await a lease; ask #2 of k for 6 (at least 1); #1 spent 0, returned");
}

TEST_F(LeaseReturnsTest, AnAskThatWasNotExecutedLeavesNothingToReturn) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Fail(1, absl::UnavailableError("away")), "");
  at = 50ms;
  EXPECT_EQ(Says(), "await a lease; ask #2 of k for 5 (at least 1)");
}

TEST_F(LeaseReturnsTest, ALostReportIsRepeated) {
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("no answer")), "");
  at = 50ms;
  EXPECT_EQ(
      Says(),
      "await a lease; ask #3 of k for 9 (at least 1); #1 spent 4, returned; #2 spent 0, returned");
  EXPECT_EQ(Grant(3, 9), "");
  EXPECT_EQ(Says(5), "allowed, 4 left; ask #4 of k for 14 (at least 5); #3 spent 5")
      << "what was told is over";
}

TEST_F(LeaseReturnsTest, AnIdleLeaseIsReturned) {
  Lease(50);
  Take();
  std::vector<std::string> said;
  while (said.empty()) {
    at = book.next_wake() - now() + at;
    said = Time();
  }
  EXPECT_THAT(said, ElementsAre("ask #2 of k; #1 spent 1, returned"));
  EXPECT_EQ(at, 500ms) << "after a quarter of the ttl";
  EXPECT_EQ(Says(), "ask the store") << "it is given up from the moment of that message";
  EXPECT_EQ(Grant(2, 0, 99), "");
  at += 125ms;
  EXPECT_THAT(Time(), IsEmpty());
  EXPECT_EQ(book.next_wake(), BootTime{INT64_MAX}) << "nothing is held";
}

TEST_F(LeaseReturnsTest, ALeaseIsReturnedBeforeItEnds) {
  Lease(50);
  for (at = 100ms; at < 1700ms; at += 100ms) {
    Take();
    EXPECT_THAT(Time(), IsEmpty()) << at.count();
    if (at == 1s) {
      EXPECT_EQ(Grant(2, 20), "");
    }
  }
  at = 1750ms;
  EXPECT_THAT(Time(), ElementsAre("ask #3 of k; #1 spent 16, returned"));
  EXPECT_THAT(Says(), StartsWith("allowed, 19 left"));
}

TEST_F(LeaseReturnsTest, TheReturnAtTheEndBringsTheNextLeaseIfTheKeyIsStillUsed) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, {.allowed = true, .limit = 1000, .remaining = 990, .reset_after = 10ms});
  }
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #1 of k for 12"));
  EXPECT_EQ(Grant(1, 12, 990), "");
  for (at = 125ms; at <= 1375ms; at += 125ms) EXPECT_THAT(Time(), IsEmpty()) << at.count();
  EXPECT_EQ(Says(), "allowed, 100 left");
  for (; at <= 1625ms; at += 125ms) EXPECT_THAT(Time(), IsEmpty()) << at.count();
  at = 1750ms;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k for 12 (at least 1); #1 spent 1, returned"));
}

TEST_F(LeaseReturnsTest, ClosingReturnsAllLeases) {
  Lease(50);
  Take(7);
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 7, returned");
  EXPECT_EQ(Return(), "") << "once";
  EXPECT_EQ(book.counters().returned, 0u) << "the store has not said so";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Grant(2, 0), "");
  EXPECT_EQ(book.counters().returned, 43u);
  EXPECT_EQ(Return(), "");
}

TEST_F(LeaseReturnsTest, AFailedReturnIsRepeatedUntilTheLeaseExpires) {
  Lease(50);
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("late")), "");
  EXPECT_EQ(Return(), "ask #3 of k; #1 spent 0, returned");
  EXPECT_EQ(Fail(3, absl::UnavailableError("gone")), "");
  at = 1900ms;
  EXPECT_EQ(Return(), "") << "the store will have counted it as spent";
  EXPECT_EQ(book.counters().returned, 0u);
  EXPECT_EQ(book.counters().expired_unspent, 50u);
}

TEST_F(LeaseReturnsTest, AReturnConfirmedAfterExpiryDoesNotCount) {
  Lease(50);
  at = 1800ms;
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
  at = 1900ms;
  EXPECT_EQ(Grant(2, 0), "");
  EXPECT_EQ(book.counters().returned, 0u);
  EXPECT_EQ(book.counters().expired_unspent, 50u);
}

TEST_F(LeaseReturnsTest, AGrantThatArrivesAfterClosingIsReturnedAtOnce) {
  for (int i = 0; i < 4; ++i) Take();
  book.Close();
  EXPECT_EQ(Return(), "");
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
}

TEST_F(LeaseReturnsTest, ALeaseOfAnotherLimitIsReturned) {
  for (int i = 0; i < 4; ++i) Take();
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Grant(1, 50), "ask #2 of k; #1 spent 0, returned");
}

}  // namespace lease_book_returns_test
}  // namespace headgate::limiter
