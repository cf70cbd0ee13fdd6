// A client that comes back after `retry_after` is admitted if no other request has come, however
// the denial was made.
#include <gtest/gtest.h>

#include <vector>

#include "headgate/algorithm/lease.h"
#include "headgate/testing/lease_node.h"

namespace headgate::limiter::lease {
namespace retry_after_test {

using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::Decision;
using base::BootTime;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

class RetryAfterTest : public ::testing::Test {
 protected:
  void Use(const algorithm::LimitSpec& spec) {
    limit = *limits.Intern(*algorithm::Limit::Make(spec));
  }

  // The store's clock differs from ours, and its windows begin at whole multiples of the period.
  Instant wall() const { return Instant::FromNanos(1'000'000'000'000) + at; }
  BootTime now() const { return BootTime{0} + 10s + at; }

  // Another instance's request.
  Decision AtStore(Cost cost) {
    return bucket.Ask(limit->limit, {.id = {.node = 2}, .cost = cost}, wall()).decision;
  }

  Decision Take(Cost cost = 1) { return node.Take(*limit, cost); }

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
  testing::LeasedBucket bucket;
  testing::LeaseNode node{{.node = 1, .keys_max = 64},
                          [this](const store::LeaseAsk& ask) {
                            const store::SharedAnswer answer =
                                bucket.Ask(limit->limit, ask, wall());
                            at += round_trip;
                            return answer;
                          },
                          [this] { return now(); }};
  Duration at{0};
  Duration round_trip = 1ms;
};

TEST_F(RetryAfterTest, ADenialOfTheStoreNamesTheNextToken) {
  Use({.requests = 100, .period = 1s});
  AtStore(100);
  const Decision denied = Take();
  EXPECT_EQ(denied.retry_after, 10ms);
  ExpectHonest(1, denied);
}

TEST_F(RetryAfterTest, ADenialAfterAllIsSpentIsHonest) {
  Use({.requests = 1000, .period = 10s});
  ExpectHonest(1, Exhaust());
}

TEST_F(RetryAfterTest, ADenialFromMemoryIsHonest) {
  Use({.requests = 1000, .period = 10s});
  Exhaust();
  const int64_t before = node.calls;
  Decision denied;
  for (int i = 0; i < 100; ++i) denied = Take();
  EXPECT_LT(node.calls - before, 20) << "most were denied from memory";
  ExpectHonest(1, denied);
}

// Another loop's request, beside the message that asks for this one.
TEST_F(RetryAfterTest, ADenialBesideAMessageIsHonest) {
  Use({.requests = 20, .period = 1s, .burst = 100});
  Exhaust();
  const auto take = [&] {
    return node.book.Take(
        testing::LeaseNode::kKey, *limit, 1, [](std::string&) {}, now());
  };
  int checked = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) Take();  // too often
    LeaseVerdict asks = take();
    while (asks.action == nullptr) {
      at += 1ms;
      asks = take();
    }
    const LeaseAction action = *asks.action;
    const LeaseVerdict meanwhile = take();
    node.Send(action);
    if (meanwhile.decision.limit == 0) continue;
    ++checked;
    at -= round_trip;
    ExpectHonest(1, meanwhile.decision);
  }
  EXPECT_GT(checked, 5);
}

// The whole limit is used in this window, and its count reduces the next one.
TEST_F(RetryAfterTest, ASlidingCounterStillCountsRequestsOfTheLastWindow) {
  for (const Cost cost : {1u, 3u, 50u, 75u, 100u}) {
    Use({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 2s});
    bucket = {};
    at += 8s - at % 2s + 1500ms;
    node.book.OnReset(testing::LeaseNode::kKey);
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

TEST_F(RetryAfterTest, AnInstanceAloneIsDeniedOnlyWhenTheWindowIsUsedUp) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 24h});
  round_trip = 0ms;
  for (uint64_t left = 1000; left-- > 0; at += 200us) {
    const Decision decision = Take();
    ASSERT_TRUE(decision.allowed) << left;
    ASSERT_EQ(decision.remaining, left);
  }
  EXPECT_FALSE(Take().allowed);
}

// The store refunds nothing that it counts as leased. Requests spent from leases and not yet
// reported have to go back into the leases.
TEST_F(RetryAfterTest, AllTakenRequestsCanBeRefundedWhileALeaseIsHeld) {
  Use({.requests = 1000, .period = 24h * 300});
  round_trip = 0ms;
  for (int i = 0; i < 800; ++i) ASSERT_TRUE(Take().allowed);
  ASSERT_FALSE(bucket.leases.empty());
  for (int i = 0; i < 4; ++i) {
    Decision decision;
    const Cost rest =
        200 - node.book.Refund(testing::LeaseNode::kKey, *limit, 200, decision, now());
    decision = algorithm::RefundLeased(limit->limit, bucket.state, bucket.leases, rest, wall());
    if (rest > 0) node.book.OnRefunded(testing::LeaseNode::kKey, decision.remaining);
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
}  // namespace headgate::limiter::lease
