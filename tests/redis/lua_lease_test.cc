// Leases in the Lua host: grants, reports, returns and expiry. One file, because each rule is
// tested with every kind of bucket that grants leases.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/algorithm/lease.h"
#include "tests/model/random_walk.h"
#include "tests/redis/lease_rig.h"

namespace headgate::redis_host {
namespace lua_lease_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using model::Between;
using store::LeaseAsk;
using store::LeaseGrant;
using store::SharedAnswer;
using namespace std::chrono_literals;

class Leases : public LeaseRig {};

const LimitSpec kHundredPerSecond{
    .algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 1s};

TEST_F(Leases, HaveHalfOfAnEvenShareOfTheRest) {
  Use(kHundredPerSecond);
  EXPECT_EQ(
      Ask({.node = kNode, .number = 1}, 80),
      (LeaseGrant{.granted = 50, .remaining = 50, .holders = 1, .ttl = kTtl, .retry_after = 0s}));
  EXPECT_EQ(
      Ask({.node = kOther, .number = 1}, 80),
      (LeaseGrant{.granted = 12, .remaining = 38, .holders = 2, .ttl = kTtl, .retry_after = 0s}));
  EXPECT_EQ(Ask({.node = kOther, .number = 2}, 5).granted, 5u);
  EXPECT_EQ(Remaining(), 33u);
  EXPECT_TRUE(Take(33));
  EXPECT_FALSE(Take(1));
}

TEST_F(Leases, AreCountedByNodeEvenIfIdsAreSimilar) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 50).granted, 50u);
  EXPECT_EQ(Ask({.node = kNode + 1, .number = 1}, 80).granted, 12u) << "a quarter of 50";
  const LeaseGrant third = Ask({.node = kNode + 2, .number = 1}, 80);
  EXPECT_EQ(third.granted, 6u) << "a sixth of 38";
  EXPECT_EQ(third.holders, 3u);
  const LeaseGrant again = Ask({.node = kNode + 2, .number = 2}, 80);
  EXPECT_EQ(again.granted, 5u) << "a sixth of 32: two leases of one node are one holder";
  EXPECT_EQ(again.holders, 3u);
}

// Leases are scanned as bytes. A node whose halves equal those of another, or bytes across two
// fields that look like an id, must not be mistaken for a lease.
TEST_F(Leases, AreDistinguishedByTheirWholeIds) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 1s});
  constexpr uint64_t kHigh = uint64_t{1} << 32;
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(Ask({.node = i * kHigh + 5, .number = 1}, 3).holders, i) << "the same lower half";
    EXPECT_EQ(Ask({.node = i * kHigh + 5, .number = 2}, 3).holders, i)
        << "a second lease of a node";
  }
  EXPECT_EQ(Ask({.node = 4 * kHigh + 6, .number = 1}, 3).holders, 5u) << "the same upper half";
  const uint64_t left = Remaining();
  // Number, granted and reported requests of the last lease, at their byte positions.
  EXPECT_EQ(Ask({.node = 1, .number = 3 * kHigh}, 2).granted, 2u);
  EXPECT_EQ(Remaining(), left - 2);
}

TEST_F(Leases, LeasesOfManyNodesAreReportedReturnedAndExpireIndependently) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 100'000, .period = 24h});
  for (uint64_t node = 1; node <= 300; ++node) {
    const LeaseAsk ask{.id = {.node = node << 32, .number = 1},
                       .want = 2,
                       .least = 1,
                       .ttl = node % 3 == 0 ? 1s : kTtl,
                       .reports = {}};
    EXPECT_EQ(store.Ask({.name = "b", .limit = limit, .lease = ask}, now).grant.granted, 2u);
  }
  EXPECT_EQ(Remaining(), 100'000u - 600u);
  for (uint64_t node = 1; node <= 300; node += 2) {
    Ask({.node = node << 32, .number = 2}, 0,
        {{.number = 1, .spent = 1, .returned = node % 4 == 1}});
  }
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u);
  EXPECT_EQ(Ask({.node = 7, .number = 1}, 1).holders, 225u + 1u);
  now += 1s;
  EXPECT_EQ(Ask({.node = 7, .number = 2}, 1).holders, 150u + 1u)
      << "expired leases are stored between live ones";
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u - 2u);
  now += kTtl;
  EXPECT_EQ(Ask({.node = 7, .number = 3}, 0).holders, 1u);
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u - 2u);
}

TEST_F(Leases, AreNotGrantedBelowAUsefulSize) {
  Use(kHundredPerSecond);
  EXPECT_TRUE(Take(90));
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 80, {}, 8).granted, 8u);
  const LeaseGrant none = Ask({.node = kOther, .number = 1}, 80, {}, 8);
  EXPECT_EQ(none.granted, 0u);
  EXPECT_EQ(none.retry_after, 60ms) << "six more tokens";
  EXPECT_EQ(Ask({.node = kOther, .number = 2}, 80, {}, 101).retry_after, algorithm::kNever);
}

TEST_F(Leases, AreGrantedOnceWhenAnAskIsRepeated) {
  Use(kHundredPerSecond);
  const LeaseGrant first = Ask({.node = kNode, .number = 1}, 20);
  now += 500ms;
  const LeaseGrant again = Ask({.node = kNode, .number = 1}, 20);
  EXPECT_EQ(again.granted, first.granted);
  EXPECT_EQ(again.ttl, kTtl - 500ms);
  EXPECT_EQ(Remaining(), 80u);
}

TEST_F(Leases, KeepTheRoomOfTheirUnspentRequests) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  now += 1900ms;  // long enough to fill the bucket twice
  EXPECT_EQ(Remaining(), 60u);
  // The room of spent requests refills.
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 30}});
  EXPECT_EQ(Remaining(), 60u);
  now += 50ms;
  EXPECT_EQ(Remaining(), 65u);
}

TEST_F(Leases, CountAsSpentWhenTheyExpire) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  now += kTtl - 1ns;
  EXPECT_EQ(Remaining(), 60u);
  now += 1ns;
  EXPECT_EQ(Remaining(), 60u);
  now += 100ms;
  EXPECT_EQ(Remaining(), 70u);
  now += 300ms;
  EXPECT_EQ(Remaining(), 100u);
  // Too late: the lease has expired.
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 100u);
}

TEST_F(Leases, GiveUnspentRequestsBackWhenReturned) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10}});
  EXPECT_EQ(Remaining(), 60u);
  Ask({.node = kNode, .number = 3}, 0, {{.number = 1, .spent = 15, .returned = true}});
  EXPECT_EQ(Remaining(), 85u);
  Ask({.node = kNode, .number = 3}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 85u) << "only once";
}

TEST_F(Leases, AreNotChangedByReportsOfOtherNodesOrOlderReports) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Ask({.node = kOther, .number = 1}, 0, {{.number = 1, .spent = 0, .returned = true}});
  Ask({.node = kNode, .number = 2}, 0, {{.number = 7, .spent = 0, .returned = true}});
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 30}});
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 20}});
  now += 1s;
  EXPECT_EQ(Remaining(), 90u);
}

TEST_F(Leases, KeepTheirRoomWhenARequestIsRefunded) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  EXPECT_TRUE(Take(10));
  EXPECT_EQ(Do(store::Operation::kRefund, 100).decision.remaining, 60u);
}

TEST_F(Leases, ABucketHasALimitedNumberOfLeases) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1'000'000, .period = 1s});
  for (uint64_t i = 1; i <= 512; ++i) ASSERT_EQ(Ask({.node = i << 16, .number = 1}, 1).granted, 1u);
  const LeaseGrant refused = Ask({.node = 513 << 16, .number = 1}, 1);
  EXPECT_EQ(refused.granted, 0u);
  EXPECT_GT(refused.retry_after, 0s);
  EXPECT_EQ(refused.holders, 513u);
}

TEST_F(Leases, AreStoredUntilTheLastHasExpiredAndItsRequestsHaveRefilled) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  EXPECT_GE(store.keyspace.TimeToLive("b", now), kTtl + 400ms);
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 40}});
  EXPECT_GE(store.keyspace.TimeToLive("b", now), kTtl) << "so that a repeated ask is recognised";
}

TEST_F(Leases, EndWithTheirWindow) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 10s});
  now = Instant::FromNanos(1'790'000'009'000'000'000);
  const LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
  EXPECT_EQ(grant.granted, 40u);
  EXPECT_EQ(grant.ttl, 1s);
  EXPECT_EQ(Remaining(), 60u);
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 5}});
  EXPECT_EQ(Remaining(), 60u);
  now += 1s;
  EXPECT_EQ(Remaining(), 100u);
  Ask({.node = kNode, .number = 3}, 0, {{.number = 1, .spent = 5, .returned = true}});
  EXPECT_EQ(Remaining(), 100u);
  EXPECT_EQ(Ask({.node = kNode, .number = 4}, 40).granted, 40u);
  Ask({.node = kNode, .number = 5}, 0, {{.number = 4, .spent = 30, .returned = true}});
  EXPECT_EQ(Remaining(), 70u) << "returned within the window";
}

TEST_F(Leases, LeasesOfASlidingCounterCountInTheWindowOfTheirGrant) {
  Use({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 10s});
  now = Instant::FromNanos(1'790'000'005'000'000'000);
  EXPECT_TRUE(Take(20));
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 100).granted, 40u);
  EXPECT_EQ(Remaining(), 40u);
  now += 4s;
  EXPECT_EQ(Remaining(), 40u) << "expired: spent";
  EXPECT_EQ(Ask({.node = kNode, .number = 2}, 100).ttl, 1s);
  EXPECT_EQ(Remaining(), 20u);
  now += 6s;  // the middle of the next window: half of the 80 count
  EXPECT_EQ(Remaining(), 60u);
}

// If the clock is set back, the bucket gets a new window, which may end before its leases.
TEST_F(Leases, EndWithTheEarlierWindowIfTheClockIsSetBack) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    SCOPED_TRACE(Name(algorithm));
    Use({.algorithm = algorithm, .requests = 100, .period = 10s});
    store.keyspace.Clear();
    now = Instant::FromNanos(1'790'000'002'000'000'000);
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).ttl, kTtl);
    now = Instant::FromNanos(1'789'990'009'500'000'000);
    const LeaseGrant again = Ask({.node = kNode, .number = 1}, 40);
    EXPECT_TRUE(events.clock_reset);
    EXPECT_EQ(again.granted, 40u);
    EXPECT_EQ(again.ttl, 500ms) << "until the end of its window";
    now += 600ms;
    EXPECT_TRUE(Take(20));
    const uint64_t left = Remaining();
    EXPECT_EQ(Ask({.node = kOther, .number = 1}, 0, {}).holders, 1u)
        << "the first lease ended with its window";
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
    EXPECT_EQ(Remaining(), left) << "a return does not count in another window";
  }
}

TEST_F(Leases, AreNotGrantedByQueuesLogsAndLimitsThatCountDenials) {
  for (const LimitSpec& spec :
       {LimitSpec{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 1s},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter,
        .requests = 10,
        .period = 1s,
        .count_denied = true}}) {
    Use(spec);
    const SharedAnswer answer = store.Ask({.name = "b",
                                           .limit = limit,
                                           .lease = LeaseAsk{.id = {1, 1}, .want = 1, .ttl = kTtl},
                                           .leased = true},
                                          now);
    EXPECT_EQ(answer.status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(Leases, SurviveAChangeOfTheLimit) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 50, .period = 1s});
  EXPECT_TRUE(Take(10));
  EXPECT_TRUE(events.carried_over);
  now += 1s;
  EXPECT_EQ(Remaining(), 10u) << "50 less the leased requests";
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 50u);
}

TEST_F(Leases, AddNothingWhenTheLimitChanges) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  const Keyspace before = store.keyspace;
  const Instant begin = now;
  for (const Duration wait : {1900ms, 2100ms}) {
    SCOPED_TRACE(wait.count());
    store.keyspace = before;
    now = begin + wait;
    Use(kHundredPerSecond);
    const uint64_t left = Remaining();
    EXPECT_EQ(left, wait < kTtl ? 60u : 70u);
    for (const LimitSpec& to :
         {LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 200, .period = 1s},
          LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 300, .period = 2s},
          LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 1h}}) {
      store.keyspace = before;
      Use(to);
      EXPECT_EQ(Remaining(), left) << model::Describe(to);
      EXPECT_TRUE(Take(1));
      EXPECT_EQ(Remaining(), left - 1) << model::Describe(to);
    }
  }
}

// A replica that lacks the last writes takes over with only some of the leases. These count until
// they expire; the other leases are unknown. The bucket is not emptied, and no window counts as
// spent.
TEST_F(Leases, ABucketInAnOlderStateContinuesFromIt) {
  for (const LimitSpec& spec :
       {kHundredPerSecond,
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 24h},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 24h}}) {
    SCOPED_TRACE(model::Describe(spec));
    Use(spec);
    store.keyspace.Clear();
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    const Keyspace replica = store.keyspace;
    EXPECT_EQ(Ask({.node = kOther, .number = 1}, 15).granted, 15u);
    EXPECT_TRUE(Take(20));
    store.keyspace = replica;
    EXPECT_EQ(Remaining(), 60u);
    Ask({.node = kOther, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
    EXPECT_EQ(Remaining(), 60u) << "an unknown lease cannot be returned";
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10, .returned = true}});
    EXPECT_EQ(Remaining(), 90u);
  }
}

// Half of the rest is leased and returned, for random limits. The scripts must multiply and divide
// exactly as the C++ algorithms do.
TEST_F(Leases, AreExactForAnyLimit) {
  model::Random random(20'261'121);
  constexpr uint64_t kU32Max = 0xffff'ffff;
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    for (int i = 0; i < 3000; ++i) {
      const LimitSpec spec = model::RandomSpec(random, algorithm);
      if (spec.requests == 0 || !algorithm::CanLease(*algorithm::Limit::Make(spec))) continue;
      SCOPED_TRACE(model::Describe(spec));
      store.keyspace.Clear();
      Use(spec);
      now = Instant::FromNanos(static_cast<int64_t>(1 + model::AnySize(random, 61)));
      const uint64_t most = std::min(limit->limit.capacity(), kU32Max);
      ASSERT_TRUE(Take(Between(random, 0, most)));
      now += Duration(static_cast<int64_t>(model::AnySize(random, 30)));
      const uint64_t left = Remaining();
      const LeaseGrant grant = Ask({.node = kNode, .number = 1}, kU32Max);
      ASSERT_EQ(grant.granted, left == 0 ? 0 : std::max<uint64_t>(1, std::min(left, kU32Max) / 2));
      ASSERT_EQ(grant.remaining, left - grant.granted);
      const uint64_t spent = Between(random, 0, grant.granted);
      if (grant.granted > 0 && grant.ttl == 0ns) continue;
      Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = spent, .returned = true}});
      ASSERT_EQ(Remaining(), left - spent);
    }
  }
}

TEST_F(Leases, AboveAMuchSmallerNewLimitLeaveNothing) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 4'000'000'000, .period = 1s});
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 2'000'000'000).granted, 2'000'000'000u);
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1, .period = 1s, .burst = 10});
  EXPECT_FALSE(Take(1))
      << "another period: the smaller of the rest and the capacity, less the leased requests";
  now += 1s;
  EXPECT_FALSE(Take(1));
  EXPECT_EQ(events, store::SharedEvents{});
  now += 3s;
  EXPECT_TRUE(Take(2));
}

}  // namespace lua_lease_test
}  // namespace headgate::redis_host
