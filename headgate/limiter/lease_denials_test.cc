// Denials without the store: how long they are remembered, and what they say.
#include "headgate/limiter/lease_denials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter {
namespace lease_denials_test {

using ::testing::StartsWith;
using namespace std::chrono_literals;

using LeaseDenialsTest = testing::LeaseDialogue;

TEST_F(LeaseDenialsTest, ADenialIsRememberedForRequestsThatAreNoCheaper) {
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

TEST_F(LeaseDenialsTest, AnExhaustedKeyIsAskedAgainAfterAPause) {
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

TEST_F(LeaseDenialsTest, AWindowIsAskedAgainWhileOthersHoldLeasesOfIt) {
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

TEST_F(LeaseDenialsTest, AKeyThatGetsAShareOfTheRestIsNotExhausted) {
  Lease(4);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(Refuse(2, 10ms), "");
  at = 50ms;
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #3 of k for 9"));
  EXPECT_EQ(Grant(3, 3, 40), "") << "others hold leases too";
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Says(), StartsWith("allowed"));
  EXPECT_THAT(Says(), ::testing::Not(StartsWith("denied"))) << "there are 40";
}

TEST_F(LeaseDenialsTest, AMoreExpensiveRequestWaitsForAllMissingTokens) {
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
TEST_F(LeaseDenialsTest, ADenialStatesLessRemainingThanItsCost) {
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

TEST_F(LeaseDenialsTest, AUsedUpWindowDeniesUntilItEnds) {
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

TEST_F(LeaseDenialsTest, ARequestThatCostsMoreThanTheRestOfAWindowWaitsForTheNextWindow) {
  limit = Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 100, .period = 10s});
  Take();
  Exact(1, {.allowed = true, .limit = 100, .remaining = 3, .reset_after = 9s});
  for (int i = 0; i < 3; ++i) Take();
  EXPECT_EQ(Grant(1, 1, 0), "");
  EXPECT_THAT(Says(), StartsWith("allowed, 0 left"));
  EXPECT_EQ(Says(80), "denied for 9000ms");
}

TEST_F(LeaseDenialsTest, AnEmptyExactBucketIsAskedOnePerPause) {
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
TEST_F(LeaseDenialsTest, TheStoreIsAskedAgainAfterAPauseWhileOthersHoldLeases) {
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
TEST_F(LeaseDenialsTest, AClientThatWaitsForRetryAfterIsAllowed) {
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

TEST_F(LeaseDenialsTest, EachAllowedRequestDelaysALargerOne) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 1000});
  Take(760);
  Exact(760,
        {.allowed = false, .limit = 1000, .remaining = 750, .retry_after = 1s, .reset_after = 25s});
  Take(600);
  Exact(600, {.allowed = true, .limit = 1000, .remaining = 150, .reset_after = 85s});
  EXPECT_EQ(Says(760), "denied for 61000ms");
}

TEST_F(LeaseDenialsTest, ADenialIsRememberedForALimitedTime) {
  Take();
  Exact(1, {.allowed = false, .limit = 100, .retry_after = 1h, .reset_after = 2h});
  at = 1500ms - 1ns;
  EXPECT_EQ(Take().decision.retry_after, 1h - at);
  at = 1500ms;
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("denied for ")) << "until that is answered";
}

TEST_F(LeaseDenialsTest, ARefundEndsARememberedDenial) {
  Take();
  Exact(1, {.allowed = false, .limit = 100, .retry_after = 1h, .reset_after = 2h});
  book.OnRefunded(kKey, 1, now());
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("denied for ")) << "until that is answered";
}

// 1,000 requests and 45 refunds a second, of a bucket that never has anything left.
TEST_F(LeaseDenialsTest, RefundsCauseNoMoreCallsForAnOverloadedKey) {
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
TEST_F(LeaseDenialsTest, CheapRequestsAreNotSentOneByOneAfterAnExpensiveOneWasRefused) {
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

TEST_F(LeaseDenialsTest, ADenialDuringAnAskNamesTheTimeOfTheNextToken) {
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
TEST_F(LeaseDenialsTest, RetryAfterOfAScarceKeyDependsOnTheCost) {
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
TEST_F(LeaseDenialsTest, AScarceKeyStaysScarceIfAnEarlierCallIsAllowed) {
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

// The store said 89 ms for two when one was left. Then it said that none is.
TEST_F(LeaseDenialsTest, RetryAfterIsAtLeastAsLongAsRemainingImplies) {
  limit = Intern({.requests = 10, .period = 1s, .burst = 100});
  Take(2);
  Exact(2,
        {.allowed = false, .limit = 100, .remaining = 1, .retry_after = 89ms, .reset_after = 10s});
  EXPECT_EQ(Says(80), "denied for 7889ms") << "a part of the next one has accrued";
  book.OnRefunded(kKey, 0, now());
  EXPECT_EQ(Says(80), "ask the store");
  EXPECT_EQ(Says(80), "denied for 8000ms");
}

}  // namespace lease_denials_test
}  // namespace headgate::limiter
