// Dialogues between a node's book and a store. A limit of 100 a second with a burst of 100; a ttl
// of 2 s, so that what is spent within 1 s is worth a lease from four requests on, and a lease is
// spent from for 1.9 s. One file because all dialogues are held with this one fixture.
#include "headgate/limiter/lease_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace headgate::limiter {
namespace {

using algorithm::Decision;
using base::BootTime;
using base::Duration;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class LeaseBookTest : public ::testing::Test {
 protected:
  static constexpr base::Hash128 kKey{7, 9};

  store::LimitHandle Intern(const algorithm::LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }

  static std::string Text(const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  }

  BootTime now() const { return BootTime{0} + 10s + at; }

  LeaseVerdict Take(algorithm::Cost cost = 1, const base::Hash128& key = kKey) {
    return book.Take(
        key, *limit, cost, [](std::string& name) { name += "k"; }, now());
  }
  std::string Says(algorithm::Cost cost = 1) { return Text(Take(cost)); }

  std::string SaysAgain(algorithm::Cost cost = 1) {
    return Text(book.TakeAgain(kKey, *limit, cost, now()));
  }

  void Exact(algorithm::Cost cost, const Decision& decision) {
    book.OnExact(kKey, *limit, cost, decision, now(), now());
  }

  // Nothing, or the action to send at once.
  std::string Answer(uint64_t number, const store::SharedAnswer& answer) {
    const LeaseAction* action = book.OnGrant(kKey, number, answer, now());
    return action != nullptr ? Text(*action) : "";
  }
  std::string Grant(uint64_t number, uint64_t granted, uint64_t remaining = 0, Duration ttl = 2s) {
    store::SharedAnswer answer;
    answer.grant = {.granted = granted, .remaining = remaining, .holders = 1, .ttl = ttl};
    return Answer(number, answer);
  }
  std::string Fail(uint64_t number, const absl::Status& status) {
    store::SharedAnswer answer;
    answer.status = status;
    return Answer(number, answer);
  }
  std::string Refuse(uint64_t number, Duration retry_after) {
    store::SharedAnswer answer;
    answer.grant = {.holders = 1, .retry_after = retry_after};
    return Answer(number, answer);
  }

  std::vector<std::string> Time() {
    std::vector<std::string> said;
    book.OnTime(now(), [&](const LeaseAction& action) { said.push_back(Text(action)); });
    return said;
  }

  // The action that returns one more key when the process ends; or nothing.
  std::string Return() {
    const LeaseAction* action = book.ReturnNext(now());
    return action != nullptr ? Text(*action) : "";
  }

  // Four requests that the store decides, and a lease of `granted`.
  void Lease(uint64_t granted) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Says(), "ask the store");
    ASSERT_THAT(Says(), StartsWith("await a lease; ask #1 of k for 4 (at least 1)"));
    ASSERT_EQ(Grant(1, granted), "");
  }

  store::LimitTable limits;
  store::LimitHandle limit = Intern({.requests = 100, .period = 1s});
  LeaseBook book{{.node = 1, .keys_max = 64, .pause_spread_percent = 0}};
  Duration at{0};
};

TEST_F(LeaseBookTest, AColdKeyIsAskedOfTheStoreEachTime) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    at += 500ms;  // two within the second that a lease would be for
  }
}

// Our clock has missed a pause: neither what is held nor what has been asked for is spent.
TEST_F(LeaseBookTest, WhatIsHeldAndWhatIsUnderWayIsDropped) {
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

TEST_F(LeaseBookTest, WhatIsAwaitedUnderAnotherLimitDecidesNothing) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Grant(1, 4), "");
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(SaysAgain(), "ask the store");
}

TEST_F(LeaseBookTest, AsksSoonerAndForMoreWhereThereIsPlenty) {
  limit = Intern({.requests = 1000, .period = 1s});
  Take();
  Exact(1, {.allowed = true, .limit = 1000, .remaining = 2 * 32 - 1, .reset_after = 1s});
  EXPECT_EQ(Says(), "ask the store");
  Exact(1, {.allowed = true, .limit = 1000, .remaining = 12 * 32, .reset_after = 1s});
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 12 (at least 1)")
      << "a small share of what is left";
  EXPECT_EQ(Grant(1, 4, 990), "");
  Take();
  EXPECT_EQ(Says(), "allowed, 992 left; ask #2 of k for 20 (at least 1); #1 spent 2")
      << "four times what came";
}

TEST_F(LeaseBookTest, WhatWasGrantedIsSpentReturnedLostOrHeld) {
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

TEST_F(LeaseBookTest, IsRenewedAtAboutHalfOfItsLife) {
  Lease(50);
  at = 749ms;
  EXPECT_EQ(Says(), "allowed, 49 left");
  at = 1s;
  EXPECT_EQ(Says(), "allowed, 48 left; ask #2 of k for 5 (at least 1); #1 spent 2");
}

TEST_F(LeaseBookTest, KeysThatWereLeasedTogetherAreNotRenewedTogether) {
  constexpr uint64_t kKeys = 16;
  const auto key_of = [](uint64_t k) { return base::Hash128{k, k}; };
  store::SharedAnswer answer;
  answer.grant = {.granted = 50, .holders = 1, .ttl = 2s};
  for (uint64_t k = 1; k <= kKeys; ++k) {
    for (int i = 0; i < 4; ++i) Take(1, key_of(k));
    EXPECT_EQ(book.OnGrant(key_of(k), k, answer, now()), nullptr);
  }
  uint64_t renewed = 0;
  uint64_t at_once_most = 0;
  for (at = 750ms; at <= 1s; at += 10ms) {
    uint64_t at_once = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) at_once += Take(1, key_of(k)).action != nullptr ? 1u : 0u;
    renewed += at_once;
    at_once_most = std::max(at_once_most, at_once);
  }
  EXPECT_EQ(renewed, kKeys);
  EXPECT_LE(at_once_most, 3u);
}

TEST_F(LeaseBookTest, IsSpentUpToItsDeadlineAndNotAfter) {
  Lease(50);
  at = 1s;
  EXPECT_THAT(Says(), StartsWith("allowed, 49 left; ask #2"));
  at = 1900ms - 1ns;
  EXPECT_EQ(Says(), "allowed, 48 left");
  at = 1900ms;
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(book.counters().expired_unspent, 48u);
}

TEST_F(LeaseBookTest, CountsALifeFromBeforeItAsked) {
  for (int i = 0; i < 4; ++i) Take();
  at = 1800ms;
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 49 left"));
  at = 1900ms;
  EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseBookTest, ThrowsAwayWhatComesAfterItsDeadline) {
  for (int i = 0; i < 4; ++i) Take();
  at = 1900ms;
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
  EXPECT_EQ(book.counters().late_grants, 1u);
}

TEST_F(LeaseBookTest, AWindowsLeaseEndsWithIt) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Grant(1, 50, 0, 100ms), "");
  at = 95ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("allowed"));
  at = 95ms;
  EXPECT_EQ(Says(), "ask the store");
}

TEST_F(LeaseBookTest, AnAnswerThatComesTwiceOrToNobodyChangesNothing) {
  Lease(4);
  EXPECT_EQ(Grant(1, 4), "");
  EXPECT_EQ(Grant(77, 4), "");
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(book.counters().late_grants, 2u);
}

TEST_F(LeaseBookTest, WhatWasPerhapsGrantedIsNeverSpentAndGoesBack) {
  for (int i = 0; i < 4; ++i) Take();
  at = 10ms;
  EXPECT_EQ(Fail(1, absl::DeadlineExceededError("no answer")), "");
  at = 11ms;
  EXPECT_EQ(Grant(1, 50), "") << "too late";
  EXPECT_EQ(Says(), "ask the store") << "not asked again at once";
  at = 60ms;
  EXPECT_EQ(Says(), "await a lease; ask #2 of k for 6 (at least 1); #1 spent 0, returned");
}

TEST_F(LeaseBookTest, WhatWasNotDoneLeavesNothingToReturn) {
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Fail(1, absl::UnavailableError("away")), "");
  at = 50ms;
  EXPECT_EQ(Says(), "await a lease; ask #2 of k for 5 (at least 1)");
}

TEST_F(LeaseBookTest, AReportThatWasLostIsMadeAgain) {
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

TEST_F(LeaseBookTest, ADenialIsRememberedForRequestsThatAreNoCheaper) {
  EXPECT_EQ(Says(5), "ask the store");
  Exact(
      5,
      {.allowed = false, .limit = 100, .remaining = 3, .retry_after = 200ms, .reset_after = 970ms});
  EXPECT_EQ(Says(5), "denied for 200ms");
  EXPECT_EQ(Says(4), "ask the store");
  at = 150ms;
  EXPECT_EQ(Says(6), "denied for 60ms") << "one more accrues in 10 ms";
  at = 200ms;
  EXPECT_EQ(Says(4), "await a lease; ask #1 of k for 24 (at least 4)");
  EXPECT_EQ(Says(5), "ask the store");
}

TEST_F(LeaseBookTest, AnExhaustedKeyIsAskedAgainAfterAPause) {
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(2, 10ms), "");
  EXPECT_EQ(Says(), "denied for 50ms") << "the pause is longer than what the store has said";
  at = 50ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("denied"));
  at = 50ms;
  EXPECT_EQ(Says(), "await a lease; ask #3 of k for 11 (at least 1); #1 spent 4, returned");
  EXPECT_EQ(Says(), "denied for 60ms")
      << "those that come meanwhile ask nothing; the answer comes within 10 ms, and a pause may "
         "follow";
  EXPECT_EQ(Grant(3, 3), "");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_EQ(Says(), "denied for 50ms") << "it took what had accrued";
  at = 100ms;
  EXPECT_THAT(Says(),
              StartsWith("await a lease; ask #4 of k for 17 (at least 1); #3 spent 3, returned"));
  EXPECT_EQ(Grant(4, 16), "");
  for (int i = 0; i < 16; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_THAT(Says(), StartsWith("ask the store")) << "there was enough: it is exhausted no more";
}

TEST_F(LeaseBookTest, AWindowIsAskedAgainWhileOthersHoldLeasesOfIt) {
  limit = Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 100, .period = 10s});
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer refusal;
  refusal.grant = {.holders = 2, .retry_after = 9s};
  EXPECT_EQ(Answer(1, refusal), "");
  EXPECT_EQ(SaysAgain(), "denied for 9000ms");
  at = 50ms;
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2")) << "they may have returned some";
  EXPECT_EQ(Refuse(2, 9s), "");
  at = 1s;
  EXPECT_EQ(Says(), "denied for 8050ms") << "nobody else holds any: it is used up";
}

TEST_F(LeaseBookTest, AShareOfWhatThereIsIsNoExhaustion) {
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(2, 10ms), "");
  at = 50ms;
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #3 of k for 9"));
  EXPECT_EQ(Grant(3, 3, 40), "") << "others hold leases too";
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_THAT(Says(), ::testing::Not(StartsWith("denied"))) << "there are 40";
}

TEST_F(LeaseBookTest, WhatCostsMoreWaitsForAllThatItLacks) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(2, 30ms), "");
  EXPECT_EQ(Says(), "denied for 50ms") << "the pause is longer than what the store has said";
  EXPECT_EQ(Says(80), "denied for 7930ms") << "79 more than the one that there is in 30 ms";
  at = 50ms;
  EXPECT_THAT(Says(80), StartsWith("await a lease; ask #3"));
  EXPECT_EQ(Grant(3, 1), "");
  EXPECT_EQ(Says(80), "denied for 8000ms") << "what it took is missing again, and nothing is left";
  EXPECT_EQ(Take(101).decision.retry_after, algorithm::kNever);
}

// Nine asks in a row: more than the budget allows, and each brings less than is wanted.
TEST_F(LeaseBookTest, ADenialDoesNotSayThatItsOwnCostRemains) {
  Lease(4);
  uint64_t number = 1;
  LeaseVerdict verdict;
  for (int i = 0; i < 200 && verdict.kind != LeaseVerdict::Kind::kDenied; ++i) {
    verdict = Take();
    if (verdict.action != nullptr) Grant(++number, 1, 40);
  }
  ASSERT_EQ(verdict.kind, LeaseVerdict::Kind::kDenied);
  EXPECT_EQ(verdict.decision.remaining, 0u) << "40 are left that it may not ask for yet";
  EXPECT_EQ(Take(3).decision.remaining, 2u);
}

TEST_F(LeaseBookTest, WhoHasSpentTheLastOfAWindowWaitsForItsEnd) {
  limit = Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 1h});
  Take();
  Exact(1, {.allowed = true, .limit = 1000, .remaining = 999, .reset_after = 20min});
  LeaseVerdict verdict;
  for (int i = 0; i < 20 && verdict.kind != LeaseVerdict::Kind::kDenied; ++i) {
    verdict = Take();
    if (verdict.action != nullptr) Grant(verdict.action->ask.id.number, 1, 0);
  }
  ASSERT_EQ(verdict.kind, LeaseVerdict::Kind::kDenied);
  EXPECT_EQ(verdict.decision.retry_after, 20min);
  EXPECT_EQ(verdict.decision.remaining, 0u);
}

TEST_F(LeaseBookTest, WhatCostsMoreThanIsLeftOfAWindowWaitsForTheNext) {
  limit = Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 100, .period = 10s});
  Take();
  Exact(1, {.allowed = true, .limit = 100, .remaining = 3, .reset_after = 9s});
  for (int i = 0; i < 3; ++i) Take();
  EXPECT_EQ(Grant(1, 1, 0), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 0 left"));
  EXPECT_EQ(Says(80), "denied for 9000ms");
}

TEST_F(LeaseBookTest, AStoreThatHasNoRoomForALeaseDeniesNobody) {
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer full;
  full.grant = {.remaining = 94, .holders = 30, .retry_after = 1ns};
  EXPECT_EQ(Answer(1, full), "");
  EXPECT_EQ(SaysAgain(), "ask the store");
  for (; at < 1s; at += 10ms) EXPECT_EQ(Says(), "ask the store") << "nor is it asked for leases";
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
}

TEST_F(LeaseBookTest, WhatWasPerhapsGrantedIsNotSaidToBeLeft) {
  Lease(4);
  Exact(1, {.allowed = true, .limit = 100, .remaining = 50, .reset_after = 500ms});
  EXPECT_EQ(Says(), "allowed, 53 left");
  EXPECT_THAT(Says(), StartsWith("allowed, 52 left; ask #2 of k for 6"));
  EXPECT_EQ(Fail(2, absl::DeadlineExceededError("no answer")), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 45 left"));
}

TEST_F(LeaseBookTest, AnExactBucketThatHasNothingLeftIsAskedForOneAtATime) {
  limit = Intern({.requests = 7, .period = 1s});
  int asked = 0;
  for (; at < 10s; at += 1ms) {
    if (Says() != "ask the store") continue;
    ++asked;
    Exact(1, {.allowed = false, .limit = 7, .remaining = 0, .retry_after = 1ms, .reset_after = 1s});
    for (int i = 0; i < 5; ++i) EXPECT_NE(Says(), "ask the store") << at.count();
  }
  EXPECT_LE(asked, 205);
  EXPECT_GE(asked, 195);
}

// The bucket fills slowly, and whoever holds leases of it may return some long before it has
// refilled.
TEST_F(LeaseBookTest, WhatOthersHoldIsAskedForAfterAPause) {
  limit = Intern({.requests = 100, .period = 24h});
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer refused;
  refused.grant = {.holders = 2, .retry_after = 14min};
  EXPECT_EQ(Answer(2, refused), "");
  at = 50ms - 1ns;
  EXPECT_THAT(Says(), StartsWith("denied"));
  at = 50ms;
  EXPECT_THAT(Says(), ::testing::HasSubstr("ask #3"));
  refused.grant.holders = 1;
  EXPECT_EQ(Answer(3, refused), "");
  at = 1550ms - 1ns;
  EXPECT_THAT(Says(), ::testing::Not(::testing::HasSubstr("ask"))) << "nobody else holds anything";
  at = 1550ms;
  EXPECT_THAT(Says(), ::testing::HasSubstr("ask #4"));
}

// A client that waits as it was told finds out what has accrued, and is not denied by what was so
// before.
TEST_F(LeaseBookTest, WhoComesAfterTheTimeItWasToldIsLetIn) {
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(2, 10ms), "");
  for (at = 1s; at < 5s; at += 1s) {
    const LeaseVerdict verdict = Take();
    if (verdict.kind == LeaseVerdict::Kind::kAskStore) {
      Exact(1, {.allowed = true, .limit = 100, .remaining = 90});
      continue;
    }
    ASSERT_NE(verdict.kind, LeaseVerdict::Kind::kDenied) << at.count();
    if (verdict.action != nullptr) Grant(verdict.action->ask.id.number, 1, 90);
    if (verdict.kind == LeaseVerdict::Kind::kAwaitLease) {
      EXPECT_THAT(SaysAgain(), StartsWith("allowed"));
    }
  }
}

TEST_F(LeaseBookTest, WhatPassesMakesALargerRequestWaitLonger) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 1000});
  Take(760);
  Exact(760,
        {.allowed = false, .limit = 1000, .remaining = 750, .retry_after = 1s, .reset_after = 25s});
  Take(600);
  Exact(600, {.allowed = true, .limit = 1000, .remaining = 150, .reset_after = 85s});
  EXPECT_EQ(Says(760), "denied for 61000ms");
}

TEST_F(LeaseBookTest, ADenialIsNotRememberedForEver) {
  Take();
  Exact(1, {.allowed = false, .limit = 100, .retry_after = 1h, .reset_after = 2h});
  at = 1500ms - 1ns;
  EXPECT_EQ(Take().decision.retry_after, 1h - at);
  at = 1500ms;
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("denied for ")) << "until that is answered";
}

// 51 nodes hold something of a bucket of 100: requests held by one are missing for the others.
TEST_F(LeaseBookTest, ABucketOfLessThanThreeForEachHolderIsExact) {
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer crowded;
  crowded.grant = {.granted = 1, .remaining = 40, .holders = 51, .ttl = 2s};
  EXPECT_EQ(Answer(1, crowded), "");
  EXPECT_EQ(SaysAgain(), "allowed, 40 left") << "what it has been given it spends";
  for (; at < 8s; at += 10ms) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, {.allowed = true, .limit = 100, .remaining = 40});
  }
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
}

TEST_F(LeaseBookTest, ARefundIsRoom) {
  Take();
  Exact(1, {.allowed = false, .limit = 100, .retry_after = 1h, .reset_after = 2h});
  book.OnRefunded(kKey, 1, now());
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("denied for ")) << "until that is answered";
}

// 1,000 requests and 45 refunds a second, of a bucket that never has anything left.
TEST_F(LeaseBookTest, RefundsDoNotMakeAnOverloadedKeyDearer) {
  int calls = 0;
  for (; at < 10s; at += 1ms) {
    const LeaseVerdict verdict = Take();
    if (verdict.action != nullptr) {
      ++calls;
      Refuse(verdict.action->ask.id.number, 100ms);
    } else if (verdict.kind == LeaseVerdict::Kind::kAskStore) {
      ++calls;
      Exact(1, {.allowed = false, .limit = 100, .retry_after = 100ms, .reset_after = 1s});
    }
    if (at % 22ms == 0ms) book.OnRefunded(kKey, 0, now());
  }
  EXPECT_LE(calls, 200 + 8);
}

// One request is left all the time. An ask for three is refused, and requests of one would pass at
// the store, each with a call of its own.
TEST_F(LeaseBookTest, CheapRequestsAreNotSentOneByOneAfterAnExpensiveOneWasRefused) {
  int calls = 0;
  for (uint64_t i = 0; at < 10s; at += 5ms, ++i) {
    const algorithm::Cost cost = i % 4 == 0 ? 3 : 1;
    const LeaseVerdict verdict = Take(cost);
    calls += verdict.action != nullptr || verdict.kind == LeaseVerdict::Kind::kAskStore ? 1 : 0;
    if (verdict.action != nullptr) {
      store::SharedAnswer answer;
      answer.grant = {.remaining = 1, .holders = 2, .retry_after = 7ms};
      if (verdict.action->ask.least == 1) answer.grant.granted = 1;
      answer.grant.ttl = 2s;
      Answer(verdict.action->ask.id.number, answer);
    } else if (verdict.kind == LeaseVerdict::Kind::kAskStore) {
      Exact(cost, {.allowed = cost == 1, .limit = 100, .remaining = 1, .retry_after = 7ms});
    }
  }
  EXPECT_LE(calls, 200 + 8 + 3) << "20 a second, 8 at once, and 3 before the key was hot";
}

TEST_F(LeaseBookTest, ADenialWhileTheStoreIsAskedWaitsForTheNextToken) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(1, 40ms), "");
  EXPECT_EQ(Says(), "denied for 50ms") << "the pause is longer than what the store has said";
  at = 60ms;
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
  EXPECT_EQ(Says(), "denied for 100ms")
      << "one is missing, at 10 a second; the ask takes what is there";
  EXPECT_EQ(Says(3), "denied for 300ms");
}

// Three were granted and nothing is left: a request of three has to wait for three.
TEST_F(LeaseBookTest, ADenialOfAScarceKeyHonoursTheCost) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  for (int i = 0; i < 3; ++i) Take(40);
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #1"));
  EXPECT_EQ(Grant(1, 3, 0), "");
  EXPECT_THAT(SaysAgain(), StartsWith("allowed"));
  EXPECT_THAT(Says(2), StartsWith("allowed"));
  EXPECT_EQ(Says(), "denied for 100ms");
  EXPECT_EQ(Says(3), "denied for 300ms");
}

// A request that went to the store while the key was asked for is allowed there. That does not end
// the pause.
TEST_F(LeaseBookTest, AScarceKeyStaysSoThoughTheStoreAllowsARequestThatWasUnderWay) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  for (int i = 0; i < 3; ++i) Take(40);
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #1"));
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Grant(1, 1, 1), "");
  EXPECT_THAT(SaysAgain(), StartsWith("allowed"));
  EXPECT_THAT(Says(), StartsWith("denied"));
  Exact(1, {.allowed = true, .limit = 100, .remaining = 1, .reset_after = 10s});
  EXPECT_THAT(Says(), StartsWith("denied"));
  at = 50ms;
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
}

TEST_F(LeaseBookTest, WhatNeverFitsIsNoDemand) {
  const std::string never = "denied for 9223372036854ms";
  EXPECT_EQ(Says(1'000'000), "ask the store") << "for what is left";
  Exact(1'000'000,
        {.allowed = false, .limit = 100, .remaining = 100, .retry_after = algorithm::kNever});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Says(1'000'000), never);
  EXPECT_EQ(book.counters().asked, 0u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 3 (at least 1)") << "what the others need";
  EXPECT_EQ(Grant(1, 3), "");
  EXPECT_EQ(Says(101), never);
  EXPECT_THAT(Says(), StartsWith("allowed")) << "the lease is as it was";
  EXPECT_EQ(book.counters().asked, 1u);
}

// The store said 89 ms for two when one was left. Then it said that none is.
TEST_F(LeaseBookTest, ADenialNeverSaysLessThanItsOwnRemainingImplies) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  Take(2);
  Exact(2,
        {.allowed = false, .limit = 100, .remaining = 1, .retry_after = 89ms, .reset_after = 10s});
  EXPECT_EQ(Says(80), "denied for 7889ms") << "a part of the next one has accrued";
  book.OnRefunded(kKey, 0, now());
  EXPECT_EQ(Says(80), "ask the store");
  EXPECT_EQ(Says(80), "denied for 8000ms");
}

TEST_F(LeaseBookTest, WhatIsIdleGoesBack) {
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

TEST_F(LeaseBookTest, WhatIsAboutToEndGoesBack) {
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

TEST_F(LeaseBookTest, ASmallShareOfWhatIsLeftStaysToItsEnd) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, {.allowed = true, .limit = 100, .remaining = 99, .reset_after = 10ms});
  }
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #1 of k for 3"));
  EXPECT_EQ(Grant(1, 3, 96), "");
  EXPECT_EQ(SaysAgain(), "allowed, 98 left");
  for (at = 125ms; at <= 1625ms; at += 125ms) EXPECT_THAT(Time(), IsEmpty()) << at.count();
  at = 1750ms;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k; #1 spent 1, returned"))
      << "nobody has asked for a second";
}

TEST_F(LeaseBookTest, WhatGoesBackAtItsEndBringsTheNextLeaseWhereTheKeyIsAskedForStill) {
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

TEST_F(LeaseBookTest, OfABusyKeyASmallShareIsRenewedWhileItCanBeSpent) {
  limit = Intern({.requests = 100'000, .period = 1s});
  for (int i = 0; i < 64; ++i) {
    if (i == 2) Exact(1, {.allowed = true, .limit = 100'000, .remaining = 99'000});
    Take();
  }
  EXPECT_EQ(Grant(1, 1'000, 99'000), "");
  at = 1250ms;
  EXPECT_EQ(Says(), "allowed, 99999 left") << "too early for the next";
  at = 1650ms;
  EXPECT_THAT(Says(), StartsWith("allowed, 99998 left; ask #2 of k for"));
  EXPECT_EQ(Says(), "allowed, 99997 left") << "nobody waits for it";
}

TEST_F(LeaseBookTest, AtTheEndEverythingGoesBack) {
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

TEST_F(LeaseBookTest, AReturnThatFailedIsTriedAgainUntilTheLeaseHasExpired) {
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

TEST_F(LeaseBookTest, AReturnThatIsConfirmedAfterTheLeaseHasExpiredDoesNotCount) {
  Lease(50);
  at = 1800ms;
  book.Close();
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
  at = 1900ms;
  EXPECT_EQ(Grant(2, 0), "");
  EXPECT_EQ(book.counters().returned, 0u);
  EXPECT_EQ(book.counters().expired_unspent, 50u);
}

TEST_F(LeaseBookTest, WhatComesAtTheEndGoesBackAtOnce) {
  for (int i = 0; i < 4; ++i) Take();
  book.Close();
  EXPECT_EQ(Return(), "");
  EXPECT_EQ(Grant(1, 50), "");
  EXPECT_EQ(Return(), "ask #2 of k; #1 spent 0, returned");
}

TEST_F(LeaseBookTest, AnotherLimitIsExactForOneTtl) {
  Lease(50);
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(Says(), "ask the store; ask #2 of k; #1 spent 0, returned");
  EXPECT_EQ(Grant(2, 0), "");
  for (; at < 2s; at += 100ms) EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #3 of k"));
}

TEST_F(LeaseBookTest, WhatWasAskedUnderAnotherLimitGoesBack) {
  for (int i = 0; i < 4; ++i) Take();
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Grant(1, 50), "ask #2 of k; #1 spent 0, returned");
}

TEST_F(LeaseBookTest, AResetForgetsWhatIsHeld) {
  Lease(50);
  book.OnReset(kKey);
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2 of k for 5 (at least 1)"))
      << "and no word of the first";
}

TEST_F(LeaseBookTest, WhatIsGivenBackIsSpentAgainUnlessItWasReported) {
  Lease(50);
  Take(10);
  EXPECT_EQ(book.GiveBack(kKey, 4, now()), 4u);
  EXPECT_EQ(Says(20), "allowed, 24 left; ask #2 of k for 34 (at least 20); #1 spent 26");
  EXPECT_EQ(book.GiveBack(kKey, 4, now()), 0u);
}

TEST_F(LeaseBookTest, SomeBucketsAreAlwaysExact) {
  using enum algorithm::Algorithm;
  for (const algorithm::LimitSpec& spec :
       {algorithm::LimitSpec{.algorithm = kSlidingWindowLog, .requests = 100, .period = 1s},
        {.algorithm = kLeakyBucketQueue, .requests = 100, .period = 1s},
        {.algorithm = kSlidingWindowCounter, .requests = 100, .period = 1s, .count_denied = true},
        {.requests = 100, .period = 1s, .burst = 7},
        {.requests = 1000, .period = 1s, .burst = 99}}) {
    limit = Intern(spec);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Says(), "ask the store");
    at += 3s;
  }
}

TEST_F(LeaseBookTest, WhenItIsFullKeysThatHoldNothingMakeWay) {
  Lease(50);
  for (uint64_t i = 0; i < 1000; ++i) Take(1, {i << 8 | 7, i});
  EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_LE(book.keys_followed(), 64u);
  EXPECT_GT(book.keys_evicted(), 900u);
}

}  // namespace
}  // namespace headgate::limiter
