// A client that comes back after `retry_after` is admitted if no other request has come. However
// the denial was made, `retry_after` is at least the rest of the pause in which this instance does
// not ask the store. The book's store runs the C++ arithmetic of leases.
#include <gtest/gtest.h>

#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/limiter/lease_book.h"

namespace headgate::limiter {
namespace retry_after_test {

using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::Decision;
using base::BootTime;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr base::Hash128 kKey{7, 9};

class RetryAfterTest : public ::testing::Test {
 protected:
  void Use(const algorithm::LimitSpec& spec) {
    limit = *limits.Intern(*algorithm::Limit::Make(spec));
  }

  // The store's clock differs from ours, and its windows begin at whole multiples of the period.
  Instant wall() const { return Instant::FromNanos(1'000'000'000'000) + at; }
  BootTime now() const { return BootTime{0} + 10s + at; }

  Decision AtStore(Cost cost) {
    return algorithm::DecideLeased(limit->limit, bucket, leases, cost, wall());
  }

  // Asks like SharedDecider. The store answers `round_trip` later.
  Decision Take(Cost cost = 1) {
    LeaseVerdict verdict = book.Take(
        kKey, *limit, cost, [](std::string& name) { name += "k"; }, now());
    if (verdict.action != nullptr) AskLease(verdict.action);
    if (verdict.kind == LeaseVerdict::Kind::kAwaitLease) {
      verdict = book.TakeAgain(kKey, *limit, cost, now());
    }
    if (verdict.kind != LeaseVerdict::Kind::kAskStore) return verdict.decision;
    const BootTime asked_at = now();
    Decision decision = AtStore(cost);
    at += round_trip;
    book.OnExact(kKey, *limit, cost, decision, asked_at, now());
    if (!decision.allowed) {
      decision.retry_after =
          std::max(decision.retry_after, book.DeniedFor(kKey, *limit, cost, now()));
    }
    return decision;
  }

  void AskLease(const LeaseAction* action) {
    while (action != nullptr) {
      const uint64_t number = action->ask.id.number;
      store::SharedAnswer answer;
      answer.grant = algorithm::AskLease(limit->limit, bucket, leases, action->ask, wall());
      at += round_trip;
      action = book.OnGrant(kKey, number, answer, now());
    }
  }

  // Comes back after the given time, without other requests in between.
  void ExpectHonest(Cost cost, const Decision& denied) {
    ASSERT_FALSE(denied.allowed);
    const Duration told = denied.retry_after;
    at += told;
    const Decision again = Take(cost);
    EXPECT_TRUE(again.allowed) << "told " << told / 1us << "us, then " << again.retry_after / 1us
                               << "us more";
  }

  // Requests until one is denied.
  Decision Exhaust(Cost cost = 1) {
    for (int i = 0; i < 100'000; ++i) {
      if (const Decision decision = Take(cost); !decision.allowed) return decision;
    }
    return {};
  }

  store::LimitTable limits;
  store::LimitHandle limit;
  algorithm::BucketState bucket;
  algorithm::Leases leases;
  LeaseBook book{{.node = 1, .keys_max = 64}};
  Duration at{0};
  Duration round_trip = 1ms;
};

// The store answers 10 ms, but is not asked again for 50 to 75 ms.
TEST_F(RetryAfterTest, AnExactDenialIncludesThePauseThatFollows) {
  Use({.requests = 100, .period = 1s});
  AtStore(100);
  const Decision denied = Take();
  EXPECT_GE(denied.retry_after, 50ms);
  ExpectHonest(1, denied);
}

TEST_F(RetryAfterTest, ARefusedLeaseIncludesThePauseThatFollows) {
  Use({.requests = 100, .period = 1s});
  const Decision denied = Exhaust();
  EXPECT_GE(denied.retry_after, 40ms);
  ExpectHonest(1, denied);
}

// Two requests in flight: the answer to the second must not move the end of the pause that was
// reported to the first.
TEST_F(RetryAfterTest, ALaterAnswerDoesNotMoveTheEndOfThePause) {
  Use({.requests = 100, .period = 1s});
  AtStore(100);
  const Decision first = Take();
  const Decision second = AtStore(1);
  at += 5ms;
  book.OnExact(kKey, *limit, 1, second, now() - 5ms, now());
  at -= 5ms;
  ExpectHonest(1, first);
}

// Another request's ask is in flight, and may be granted only what that request needs.
TEST_F(RetryAfterTest, ADenialDuringAnAskIncludesThePauseAfterIt) {
  Use({.requests = 20, .period = 1s});
  Exhaust();
  for (int round = 0; round < 20; ++round) {
    LeaseVerdict asks;
    while (asks.kind != LeaseVerdict::Kind::kAwaitLease) {
      at += 1ms;
      asks = book.Take(
          kKey, *limit, 1, [](std::string&) {}, now());
    }
    const LeaseAction action = *asks.action;
    const LeaseVerdict meanwhile = book.Take(
        kKey, *limit, 1, [](std::string&) {}, now());
    ASSERT_EQ(meanwhile.kind, LeaseVerdict::Kind::kDenied);
    const Duration asked = at;
    AskLease(&action);
    (void)book.TakeAgain(kKey, *limit, 1, now());
    at = asked;
    ExpectHonest(1, meanwhile.decision);
  }
}

// The whole limit is used in this window, and its count reduces the next one.
TEST_F(RetryAfterTest, ASlidingCounterStillCountsRequestsOfTheLastWindow) {
  for (const Cost cost : {1u, 3u, 50u, 75u, 100u}) {
    Use({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 2s});
    bucket = {};
    leases.clear();
    at += 8s - at % 2s + 1500ms;
    book.OnReset(kKey);
    Exhaust();
    const Decision denied = Take(cost);
    ExpectHonest(cost, denied);
  }
}

TEST_F(RetryAfterTest, ASlidingCounterOfALongPeriodNamesTheRightTime) {
  Use({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 1min});
  at = 59s;
  Exhaust();
  ExpectHonest(80, Take(80));
}

TEST_F(RetryAfterTest, RequestsAdmittedInAWindowDelayALargerOne) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    Use({.algorithm = algorithm, .requests = 7, .period = 4s});
    bucket = {};
    at += 8s - at % 4s + 1s;
    EXPECT_TRUE(Take(3).allowed);
    EXPECT_FALSE(Take(5).allowed);
    EXPECT_TRUE(Take(4).allowed);
    ExpectHonest(5, Take(5));
  }
}

// No other instance holds leases, so the store keeps nothing back for others. The demand grows so
// fast that the budget of asks is overspent.
TEST_F(RetryAfterTest, ASingleHolderIsDeniedOnlyWhenTheWindowIsUsedUp) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 24h});
  round_trip = 0ms;
  uint64_t passed = 0;
  Decision decision = Take();
  for (; decision.allowed; decision = Take()) {
    ++passed;
    at += 200us;
  }
  EXPECT_EQ(passed, 1000u) << decision.remaining << " said to remain";
}

// The store refunds nothing that it counts as leased. Requests spent from leases and not yet
// reported have to go back into the leases.
TEST_F(RetryAfterTest, AllTakenRequestsCanBeRefundedWhileALeaseIsHeld) {
  Use({.requests = 1000, .period = 24h * 300});
  round_trip = 0ms;
  for (int i = 0; i < 800; ++i) ASSERT_TRUE(Take().allowed);
  ASSERT_FALSE(leases.empty());
  for (int i = 0; i < 4; ++i) {
    Decision decision;
    const Cost rest = 200 - book.Refund(kKey, *limit, 200, decision, now());
    decision = algorithm::RefundLeased(limit->limit, bucket, leases, rest, wall());
    if (rest > 0) book.OnRefunded(kKey, decision.remaining, now());
  }
  int passed = 0;
  for (int i = 0; i < 1900; ++i) {
    at += 1ms;
    passed += Take().allowed ? 1 : 0;
  }
  EXPECT_EQ(passed, 1000);
}

// Requests of all costs, beyond the limit, at a steady pace. Each denial is checked in a copy of
// the world in which no other request comes.
class EveryPathTest : public RetryAfterTest,
                      public ::testing::WithParamInterface<algorithm::LimitSpec> {};

TEST_P(EveryPathTest, NamesATimeAtWhichTheRequestPasses) {
  Use(GetParam());
  const Cost most = std::min<Cost>(limit->limit.capacity(), 9);
  int denials = 0;
  uint64_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    at += Duration(static_cast<int64_t>(random >> 40));  // up to 16 ms
    const Cost cost = 1 + (random >> 33) % most;
    const Decision decision = Take(cost);
    if (decision.allowed || i % 10 != 0) continue;
    ++denials;
    // A denied request waits no longer than its limit requires.
    EXPECT_LE(decision.retry_after, 2 * limit->limit.spec().period + 200ms);
    ExpectHonest(cost, decision);
    if (HasFailure()) FAIL() << "cost " << cost << " at step " << i;
  }
  EXPECT_GT(denials, 20);
}

INSTANTIATE_TEST_SUITE_P(
    RetryAfterTest, EveryPathTest,
    ::testing::Values(
        algorithm::LimitSpec{.requests = 100, .period = 1s},
        algorithm::LimitSpec{.requests = 40, .period = 1s, .burst = 200},
        algorithm::LimitSpec{.algorithm = Algorithm::kLeakyBucket, .requests = 60, .period = 1s},
        algorithm::LimitSpec{.requests = 5, .period = 1s},
        algorithm::LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 1s},
        algorithm::LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 300, .period = 7s},
        algorithm::LimitSpec{
            .algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 1s},
        algorithm::LimitSpec{
            .algorithm = Algorithm::kSlidingWindowCounter, .requests = 300, .period = 7s}));

}  // namespace retry_after_test
}  // namespace headgate::limiter
