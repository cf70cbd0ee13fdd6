// Denials without the store: which requests are denied, for how long, and what a denial says.
#include "headgate/limiter/lease/lease_denials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"
#include "headgate/testing/lease_node.h"

namespace headgate::limiter::lease {
namespace lease_denials_test {

using ::testing::StartsWith;
using namespace std::chrono_literals;

// An overloaded key pauses for 20 ms, and for up to 20 ms more.
constexpr base::Duration kPause = 20ms;
constexpr base::Duration kSpread = 20ms;

class LeaseDenialsTest : public testing::LeaseDialogue {
 protected:
  bool IsDeniedHere(algorithm::Cost cost = 1) {
    return Take(cost).kind == LeaseVerdict::Kind::kDenied;
  }
  // Answers the request, if it asks the store. Returns whether it does.
  bool AnswerTo(const LeaseVerdict& verdict, algorithm::Cost cost,
                const store::SharedAnswer& answer) {
    if (verdict.action != nullptr) {
      EXPECT_EQ(Answer(verdict.action->ask.id.number, answer), "");
      return true;
    }
    if (verdict.kind != LeaseVerdict::Kind::kAskStore) return false;
    EXPECT_TRUE(Exact(cost, answer));
    return true;
  }
  // 40 requests at once, each of which costs what is left, and is denied because others have taken
  // one of that. So none is denied here; and then 20 are left.
  void OverspendFar(base::Duration next_after) {
    for (algorithm::Cost cost = 60; cost > 20; --cost)
      ASSERT_TRUE(AnswerTo(Take(cost), cost, Denied(next_after, cost - 1))) << cost;
  }
  // The calls that a request in each of 10,000 ms causes. The store denies all.
  template <typename CostAt>
  int CallsIn10s(CostAt cost_at) {
    int calls = 0;
    for (; at < 10s; at += 1ms) {
      const algorithm::Cost cost = cost_at(at / 1ms);
      calls += AnswerTo(Take(cost), cost, Denied(100ms)) ? 1 : 0;
    }
    return calls;
  }
  base::Duration RetryAfter(algorithm::Cost cost = 1) {
    const LeaseVerdict verdict = Take(cost);
    EXPECT_EQ(verdict.kind, LeaseVerdict::Kind::kDenied) << verdict;
    return verdict.decision.retry_after;
  }
};

TEST_F(LeaseDenialsTest, WithinItsBudgetEachRequestAsksTheStore) {
  for (int i = 0; i <= AskBudget::kAtOnce; ++i) {
    EXPECT_EQ(Says(), "ask the store") << i;
    EXPECT_TRUE(Exact(1, Denied(1h)));
  }
  EXPECT_TRUE(IsDeniedHere()) << "it has used up its budget";
}

TEST_F(LeaseDenialsTest, AnOverloadedKeyIsDeniedWhatExceedsTheRest) {
  Overspend(Denied(25ms, 4), 5);
  EXPECT_TRUE(IsDeniedHere(5));
  EXPECT_TRUE(IsDeniedHere(7));
  EXPECT_FALSE(IsDeniedHere(4));
}

// The store denies it nevertheless: others have taken something since.
TEST_F(LeaseDenialsTest, WhatTheRestCoversAsksTheStoreHoweverOften) {
  Overspend(Denied(25ms, 40), 5);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(AnswerTo(Take(5), 5, Denied(25ms, 40))) << i;
}

TEST_F(LeaseDenialsTest, AKeyOfWhichNothingWasDeniedIsNotOverloaded) {
  for (int i = 0; i < 2 * AskBudget::kAtOnce; ++i) {
    EXPECT_EQ(Says(), "ask the store") << i;
    EXPECT_TRUE(Exact(1, Allowed(10)));
  }
  EXPECT_FALSE(IsDeniedHere(11));
}

// Its budget is overspent again after that time, by requests that are allowed.
TEST_F(LeaseDenialsTest, AKeyIsOverloadedForAQuarterOfTheTtlAfterADenial) {
  for (const base::Duration after : {500ms - 1ns, base::Duration(500ms)}) {
    at += 10s;
    Overspend(Denied(1h));
    at += after;
    Overspend(Allowed(10));
    EXPECT_EQ(IsDeniedHere(11), after < 500ms) << after / 1ns;
  }
}

// Near exhaustion only an overloaded key asks for a lease. The 40 asks were 32 more than the budget
// gives at once.
TEST_F(LeaseDenialsTest, AStormThatHasEndedIsForgottenAfterFourPauses) {
  OverspendFar(1h);
  at = 4 * kPause - 1ns;
  EXPECT_THAT(Says(21), StartsWith("await the answer; ask"));
  book.OnReset(kKey);
  at = 10s;
  OverspendFar(1h);
  at += 4 * kPause;
  EXPECT_EQ(Says(21), "ask the store");
}

// Others may have returned or refunded something since.
TEST_F(LeaseDenialsTest, ADenialStandsForOnePauseWhateverMomentTheStoreNamed) {
  for (const store::SharedAnswer& denied :
       {Denied(1ns), Denied(25ms), Denied(1h), Denied(1h, 0, /*others=*/3)}) {
    SCOPED_TRACE(denied.decision.retry_after / 1us);
    at += 10s;
    Overspend(denied);
    at += kPause - 1ns;
    EXPECT_TRUE(IsDeniedHere());
    at += kSpread + 1ns;
    EXPECT_FALSE(IsDeniedHere());
    book.OnReset(kKey);
  }
}

// An own request costs 1 to 40, and another instance takes one in each 8 ms.
TEST_F(LeaseDenialsTest, NoCostIsDeniedThatWhatIsHeldAndTheHeardRestCover) {
  testing::LeasedBucket bucket;
  const auto wall = [&] { return base::Instant::FromNanos(now().ns); };
  uint64_t heard = 0;
  int denied = 0, allowed = 0;
  uint64_t random = 1;
  for (int i = 0; i < 10'000; ++i, at += 500us) {
    if (i % 16 == 0) bucket.Ask(limit->limit, {.id = {.node = 2}, .cost = 1}, wall());
    random = random * 6364136223846793005u + 1442695040888963407u;
    const algorithm::Cost cost = 1 + (random >> 33) % 40;
    const LeaseVerdict verdict = Take(cost);
    if (verdict.kind == LeaseVerdict::Kind::kDenied) {
      ++denied;
      ASSERT_GT(cost, Held() + heard) << "request " << i;
      continue;
    }
    if (verdict.kind == LeaseVerdict::Kind::kAllowed && verdict.action == nullptr) continue;
    const store::SharedAnswer answer =
        bucket.Ask(limit->limit,
                   verdict.action != nullptr ? verdict.action->ask
                                             : store::LeaseAsk{.id = {.node = 1}, .cost = cost},
                   wall());
    ASSERT_TRUE(AnswerTo(verdict, cost, answer)) << verdict;
    heard = answer.decision.remaining;
    allowed += answer.decision.allowed ? 1 : 0;
  }
  EXPECT_GT(denied, 1000);
  EXPECT_GT(allowed, 20);
}

TEST_F(LeaseDenialsTest, DescendingCostsOfAnOverloadedKeyCauseNoMessageEach) {
  Overspend(Denied(1h), 1000);
  for (algorithm::Cost cost = 999; cost > 0; --cost) EXPECT_TRUE(IsDeniedHere(cost)) << cost;
}

TEST_F(LeaseDenialsTest, DescendingCostsCauseOneCallForEachPause) {
  const auto cost_at = [](int64_t ms) { return static_cast<algorithm::Cost>(1000 - ms % 1000); };
  EXPECT_LE(CallsIn10s(cost_at), 10s / kPause + AskBudget::kAtOnce);
}

// ---- What a denial tells

TEST_F(LeaseDenialsTest, ADenialTellsAtLeastThePauseAndItsSpread) {
  Overspend(Denied(1ns));
  EXPECT_EQ(RetryAfter(), kPause + kSpread);
}

// Another instance may have taken all of the bucket since.
TEST_F(LeaseDenialsTest, ACostAccruesOnceMoreFromAnEmptyBucket) {
  Overspend(Denied(1ns), 9);
  EXPECT_EQ(RetryAfter(9), 90ms) << "9 requests at 10 ms each";
}

TEST_F(LeaseDenialsTest, ADenialOfTheStoreIsToldForThePauseIfOthersMayDenyInIt) {
  LeaseBook one_of_four({.node = 1, .keys_max = 64, .instances = [] { return 4u; }});
  for (LeaseBook* of : {&one_of_four, &book}) {
    of->Take(
        kKey, *limit, 1, [](std::string&) {}, now());
    EXPECT_TRUE(of->OnExact(kKey, *limit, 1, Denied(1ns), now()));
  }
  EXPECT_EQ(one_of_four.DeniedFor(kKey, *limit, now()), kPause + kSpread);
  EXPECT_EQ(book.DeniedFor(kKey, *limit, now()), 0ns) << "there is no other";
  at = 10s;
  Overspend(Denied(1ns));
  EXPECT_EQ(book.DeniedFor(kKey, *limit, now()), kPause + kSpread) << "this one may";
}

TEST_F(LeaseDenialsTest, ADenialNamesNoEarlierMomentThanTheStore) {
  Overspend(Denied(1h));
  EXPECT_GE(RetryAfter(), 1h);
  EXPECT_LE(RetryAfter(), 1h + kPause + kSpread);
  at = 5ms;
  EXPECT_GE(RetryAfter(), 1h - 5ms);
}

// The store has answered at some moment in the 19 ms between question and answer.
TEST_F(LeaseDenialsTest, TheClientWaitsFromTheAnswerAndTheStoreIsAskedAsOfTheQuestion) {
  OverspendFar(1h);
  const LeaseVerdict asks = Take(20);
  ASSERT_NE(asks.action, nullptr);
  const uint64_t number = asks.action->ask.id.number;
  at = kPause - 1ms;
  EXPECT_EQ(Answer(number, Denied(300ms)), "");
  EXPECT_GE(RetryAfter(20), 300ms);
  EXPECT_LE(RetryAfter(20), 300ms + 1ns) << "rounded up";
  at = kPause + kSpread;
  EXPECT_FALSE(IsDeniedHere(20));
}

TEST_F(LeaseDenialsTest, AMoreExpensiveRequestWaitsForAllMissingTokens) {
  Overspend(Denied(25ms));
  // 79 more at 10 ms each than the one that is there in 25 ms.
  EXPECT_EQ(RetryAfter(80), 25ms + 790ms);
}

TEST_F(LeaseDenialsTest, AMoreExpensiveRequestWaitsForTheNextWindow) {
  limit =
      Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(9s);
  denied.decision.reset_after = 9s;
  Overspend(denied);
  EXPECT_EQ(RetryAfter(), 9s);
  EXPECT_EQ(RetryAfter(80), 9s);
}

// The store has said that the request passes at once. Since then, others have taken the rest.
TEST_F(LeaseDenialsTest, InAWindowWhoseRestIsGoneARequestWaitsForTheNextWindow) {
  limit =
      Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer answer = Denied(9s);
  answer.decision.reset_after = 9s;
  Overspend(answer);
  book.OnRefunded(kKey, 2);
  answer.decision = {.allowed = true, .limit = 1000, .remaining = 1, .reset_after = 9s};
  answer.grant.next_after = 0ns;
  ASSERT_TRUE(AnswerTo(Take(), 1, answer));
  book.OnRefunded(kKey, 0);
  EXPECT_EQ(RetryAfter(), 9s);
}

// One more comes back in 50 ms, so five do in 250 ms.
TEST_F(LeaseDenialsTest, InASlidingCounterACostComesBackAsFastAsTheStoreSaid) {
  limit = Intern(
      {.algorithm = algorithm::Algorithm::kSlidingWindowCounter, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(50ms, 4);
  denied.decision.reset_after = 9s;
  Overspend(denied, 5);
  EXPECT_EQ(RetryAfter(5), 250ms);
  book.OnRefunded(kKey, 0);
  EXPECT_EQ(RetryAfter(5), 250ms) << "whatever others have taken since";
}

// All of the limit may count in this window, and weighs on the next one: half of it has passed on
// after half of that window.
TEST_F(LeaseDenialsTest, InASlidingCounterAMoreExpensiveRequestWaitsForItsPartOfTheNextWindow) {
  limit = Intern(
      {.algorithm = algorithm::Algorithm::kSlidingWindowCounter, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(50ms);
  denied.decision.reset_after = 9s;
  Overspend(denied);
  EXPECT_EQ(RetryAfter(500), 9s + 5s);
}

TEST_F(LeaseDenialsTest, ARequestThatCanNeverFitIsNotDemand) {
  EXPECT_EQ(Says(1'000'000), "ask the store") << "for what is left";
  store::SharedAnswer never = Denied(algorithm::kNever, 1000);
  EXPECT_TRUE(Exact(1'000'000, never));
  for (int i = 0; i < 100; ++i) {
    const LeaseVerdict verdict = Take(1'000'000);
    ASSERT_EQ(verdict.kind, LeaseVerdict::Kind::kDenied);
    EXPECT_TRUE(verdict.decision.never_fits());
  }
  EXPECT_EQ(Says(), "ask the store") << "it is the first";
  EXPECT_TRUE(Exact(1, Allowed(999)));
  EXPECT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 40 or 2 of a part of 2");
  EXPECT_EQ(Grant(1, 3), "");
  EXPECT_TRUE(Take(1001).decision.never_fits());
  EXPECT_EQ(Says(), "allowed, 502 left") << "the lease is as it was";
}

TEST_F(LeaseDenialsTest, ADenialStatesWhatRemains) {
  Overspend(Denied(25ms, 4), 5);
  EXPECT_EQ(Take(5).decision.remaining, 4u);
  EXPECT_EQ(Take(9).decision.remaining, 4u);
}

TEST_F(LeaseDenialsTest, ARefundEndsADenial) {
  Overspend(Denied(1h));
  book.OnRefunded(kKey, 1);
  EXPECT_FALSE(IsDeniedHere());
}

// 1,000 requests and 45 refunds a second, of a bucket that never has anything left.
TEST_F(LeaseDenialsTest, RefundsCauseNoMoreCallsForAnOverloadedKey) {
  const int calls = CallsIn10s([&](int64_t ms) {
    if (ms % 22 == 0) book.OnRefunded(kKey, 0);
    return algorithm::Cost{1};
  });
  EXPECT_LE(calls, 10s / kPause + AskBudget::kAtOnce) << "one for each 20 ms";
}

// A request that comes meanwhile is denied from memory, or for another loop, which cannot wait for
// the message of this one. The message may be denied, and the longest pause may follow.
TEST_F(LeaseDenialsTest, BesideAMessageADenialIsToldForAWholePauseToo) {
  for (const base::Duration next_after :
       {base::Duration(1ns), base::Duration(25ms), base::Duration(1h)}) {
    SCOPED_TRACE(next_after / 1us);
    at += 10s;
    OverspendFar(next_after);
    const base::Duration denied_at = at;
    at += kPause;
    while (IsDeniedHere(21)) at += 1ms;  // then a message asks
    const LeaseVerdict beside = Take(21);
    EXPECT_EQ(beside.kind, LeaseVerdict::Kind::kAwait);
    EXPECT_EQ(beside.action, nullptr);
    EXPECT_EQ(beside.decision.limit, 1000u);
    EXPECT_FALSE(beside.decision.allowed);
    EXPECT_GE(beside.decision.retry_after, kPause + kSpread);
    EXPECT_GE(beside.decision.retry_after, 210ms) << "21 requests at 10 ms each";
    EXPECT_GE(at + beside.decision.retry_after, denied_at + next_after);
    EXPECT_EQ(Take(20).decision.limit, 0u) << "the rest covers it";
    book.OnReset(kKey);
  }
}

TEST_F(LeaseDenialsTest, WithinItsBudgetARequestHasNoDecisionBesideTheMessage) {
  Says(100);
  EXPECT_TRUE(Exact(100, Denied(1h, 99)));
  ASSERT_NE(Take(100).action, nullptr);
  const LeaseVerdict verdict = Take(100);
  EXPECT_EQ(verdict.kind, LeaseVerdict::Kind::kAwait);
  EXPECT_EQ(verdict.decision.limit, 0u);
}

TEST_F(LeaseDenialsTest, ADenialNeverStandsWhileALeaseCanPay) {
  OverspendFar(25ms);
  const LeaseVerdict asks = Take(1);
  ASSERT_NE(asks.action, nullptr);
  EXPECT_EQ(Grant(asks.action->ask.id.number, 19, 0), "");
  EXPECT_FALSE(book.IsDenied(kKey, *limit, 19, now()));
  EXPECT_TRUE(book.IsDenied(kKey, *limit, 20, now()));
  EXPECT_THAT(Says(19), StartsWith("allowed"));
}

// The next window is full.
TEST_F(LeaseDenialsTest, AFixedWindowIsAskedAgainWhenItEnds) {
  limit =
      Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(17ms);
  denied.decision.reset_after = 17ms;
  Overspend(denied);
  at = 17ms - 1ns;
  EXPECT_TRUE(IsDeniedHere());
  at = 17ms;
  EXPECT_NE(Take().action, nullptr);
  const LeaseVerdict beside = Take();
  EXPECT_EQ(beside.kind, LeaseVerdict::Kind::kAwait);
  EXPECT_EQ(beside.decision.limit, 0u) << "nor is it denied beside that message";
}

// The store may have answered at the moment of the question, 5 ms ago.
TEST_F(LeaseDenialsTest, AFixedWindowEndsAsOfTheQuestion) {
  limit =
      Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(17ms);
  denied.decision.reset_after = 17ms;
  for (int i = 0; i < AskBudget::kAtOnce; ++i) ASSERT_TRUE(AnswerTo(Take(), 1, denied));
  ASSERT_EQ(Says(), "ask the store");
  at = 5ms;
  EXPECT_TRUE(Exact(1, denied));
  at = 17ms - 1ns;
  EXPECT_TRUE(IsDeniedHere());
  at = 17ms;
  EXPECT_FALSE(IsDeniedHere());
}

// The store's clock was set back by an hour, 22 us before the end of a window.
TEST_F(LeaseDenialsTest, AWindowThatEndsAgainAndAgainIsAskedOncePerPause) {
  limit =
      Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(22us);
  denied.decision.reset_after = 22us;
  int calls = 0;
  for (; at < 1s; at += 1ms) calls += AnswerTo(Take(1), 1, denied) ? 1 : 0;
  EXPECT_LE(calls, 1s / kPause + AskBudget::kAtOnce);
}

// The rest of a sliding counter is lost when its window ends.
TEST_F(LeaseDenialsTest, ASlidingCounterIsAskedEach5MsInTheLastTwoPausesOfItsWindow) {
  limit = Intern(
      {.algorithm = algorithm::Algorithm::kSlidingWindowCounter, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(1h);
  denied.decision.reset_after = 52ms;
  Overspend(denied);
  at = 52ms - 2 * kPause - 1ns;
  EXPECT_TRUE(IsDeniedHere());
  for (const base::Duration asked : {0ms, 5ms, 10ms}) {
    at = 52ms - 2 * kPause + asked;
    denied.decision.reset_after = 52ms - at;
    EXPECT_TRUE(AnswerTo(Take(1), 1, denied)) << asked;
    at += 5ms - 1ns;
    EXPECT_TRUE(IsDeniedHere()) << asked;
  }
}
TEST_F(LeaseDenialsTest, ASlidingCounterOfFewRequestsIsAskedOnceMoreBeforeItsWindowEnds) {
  limit = Intern(
      {.algorithm = algorithm::Algorithm::kSlidingWindowCounter, .requests = 100, .period = 10s});
  store::SharedAnswer denied = Denied(1h);
  denied.decision.reset_after = 32ms;
  Overspend(denied);
  at = 27ms - 1ns;
  EXPECT_TRUE(IsDeniedHere());
  at = 27ms;
  EXPECT_FALSE(IsDeniedHere());
}

// ---- Answers to peeks and refunds.

TEST_F(LeaseDenialsTest, WhatIsHeldRemains) {
  const algorithm::Decision decision{
      .allowed = false, .limit = 1000, .remaining = 3, .retry_after = 70ms, .reset_after = 9970ms};
  const auto told = [&](algorithm::Cost cost, uint64_t held) {
    return LeaseDenials::WithHeld(limit->limit, cost, decision, held);
  };
  EXPECT_EQ(told(10, 0).remaining, 3u);
  EXPECT_FALSE(told(10, 6).allowed);
  EXPECT_EQ(told(10, 6).remaining, 9u);
  EXPECT_EQ(told(10, 6).retry_after, 10ms + 1ns) << "60 ms are held; a part may have accrued";
  EXPECT_TRUE(told(10, 7).allowed);
  EXPECT_EQ(told(10, 7).retry_after, 0ns);
  EXPECT_EQ(told(10, 5000).remaining, 1000u);
}

}  // namespace lease_denials_test
}  // namespace headgate::limiter::lease
