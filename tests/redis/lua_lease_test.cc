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

TEST_F(Leases, AreSmallOrBrief) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 3200, .period = 32s});
  EXPECT_EQ(Ask({.id = {.node = kNode, .number = 1}, .want = 1000}),
            (LeaseGrant{.granted = 100, .ttl = kTtl}))
      << "a part in 32";
  EXPECT_EQ(decision.remaining, 3100u);
  EXPECT_EQ(Ask({.id = {.node = kNode, .number = 2}, .want = 1000}).granted, 0u)
      << "as much as the node may hold";
  EXPECT_EQ(Ask({.id = {.node = kOther, .number = 1}, .want = 1000, .brief = 800, .parts = 4}),
            (LeaseGrant{.granted = 775, .others = 100, .others_until = now + kTtl, .ttl = kTtl}))
      << "3100 / 4";
  EXPECT_EQ(Remaining(), 2325u);
  EXPECT_TRUE(Take(2325));
  EXPECT_FALSE(Take(1));
}

TEST_F(Leases, AreHeldByNodesEvenIfTheirIdsAreSimilar) {
  Use(kHundredPerSecond);
  const auto quarter = [&](store::LeaseId id) {
    return Ask({.id = id, .want = 100, .brief = 100, .parts = 4});
  };
  EXPECT_EQ(quarter({.node = kNode, .number = 1}).granted, 25u);
  const LeaseGrant second = quarter({.node = kNode + 1, .number = 1});
  EXPECT_EQ(second.granted, 18u) << "75 / 4";
  EXPECT_EQ(second.others, 25u);
  const LeaseGrant again = quarter({.node = kNode + 1, .number = 2});
  EXPECT_EQ(again.granted, 0u) << "(57 + 18) / 4 = 18";
  EXPECT_EQ(again.others, 25u);
}

TEST_F(Leases, TheRequestInTheMessageIsDecidedWithAllThatTheNodeReturns) {
  for (const LimitSpec& spec :
       {kHundredPerSecond,
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 24h},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 24h}}) {
    SCOPED_TRACE(model::Describe(spec));
    store.keyspace.Clear();
    Use(spec);
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 60).granted, 60u);
    EXPECT_TRUE(Take(40));
    const std::vector<store::LeaseReport> returned{{.number = 1, .spent = 10, .returned = true}};
    LeaseAsk ask{.id = {.node = kNode, .number = 2},
                 .cost = 51,
                 .want = 80,
                 .brief = 80,
                 .reports = returned};
    EXPECT_EQ(Ask(ask).granted, 0u);
    EXPECT_FALSE(decision.allowed);
    EXPECT_EQ(decision.remaining, 50u);
    ask.id.number = 3;
    ask.cost = 45;
    EXPECT_EQ(Ask(ask).granted, 5u) << "what is left";
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, 0u);
    EXPECT_EQ(Ask(ask).granted, 5u);
    EXPECT_TRUE(decision.allowed) << "it came twice, and was taken once";
    EXPECT_EQ(Remaining(), 0u);
  }
}

TEST_F(Leases, AreNotGrantedWithADenialButTheMomentOfTheNextRequestIs) {
  Use(kHundredPerSecond);
  EXPECT_TRUE(Take(98));
  const LeaseGrant none =
      Ask({.id = {.node = kNode, .number = 1}, .cost = 8, .want = 80, .brief = 80});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.retry_after, 60ms) << "six more tokens";
  EXPECT_EQ(none, (LeaseGrant{.next_after = 60ms}));
  EXPECT_EQ(Ask({.id = {.node = kNode, .number = 2}, .cost = 2}).next_after, 20ms)
      << "another request of that cost";
  EXPECT_EQ(Ask({.id = {.node = kNode, .number = 3}}).next_after, 10ms) << "a cost of 1";
  EXPECT_EQ(Ask({.id = {.node = kNode, .number = 4}, .cost = 101}).next_after, algorithm::kNever);
}

// Leases are scanned as bytes. A node whose halves equal those of another, or bytes across two
// fields that look like an id, must not be mistaken for a lease.
TEST_F(Leases, AreDistinguishedByTheirWholeIds) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 1s});
  constexpr uint64_t kHigh = uint64_t{1} << 32;
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(Ask({.node = i * kHigh + 5, .number = 1}, 2).others, 3 * (i - 1))
        << "the same lower half";
    const LeaseGrant second = Ask({.node = i * kHigh + 5, .number = 2}, 3);
    EXPECT_EQ(second.granted, 1u) << "a second lease of a node";
    EXPECT_EQ(second.others, 3 * (i - 1));
  }
  EXPECT_EQ(Ask({.node = 4 * kHigh + 6, .number = 1}, 3).others, 12u) << "the same upper half";
  const uint64_t left = Remaining();
  // Number, granted and reported requests of the last lease, at their byte positions.
  EXPECT_EQ(Ask({.node = 1, .number = 3 * kHigh}, 2).granted, 2u);
  EXPECT_EQ(Remaining(), left - 2);
}

TEST_F(Leases, LeasesOfManyNodesAreReportedReturnedAndExpireIndependently) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 100'000, .period = 24h});
  for (uint64_t node = 1; node <= 300; ++node) {
    const LeaseAsk ask{
        .id = {.node = node << 32, .number = 1}, .want = 2, .ttl = node % 3 == 0 ? 1s : kTtl};
    EXPECT_EQ(store.Ask({.name = "b", .limit = limit, .lease = ask}, now).grant.granted, 2u);
  }
  EXPECT_EQ(Remaining(), 100'000u - 600u);
  for (uint64_t node = 1; node <= 300; node += 2) {
    Ask({.node = node << 32, .number = 2}, 0,
        {{.number = 1, .spent = 1, .returned = node % 4 == 1}});
  }
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u);
  // 300 leases hold 2 requests each. 150 leases did not report; the other 150 reported one spent
  // request, and half of them returned the second.
  EXPECT_EQ(Ask({.node = 7, .number = 1}, 1).others, 300u + 75u);
  now += 1s;
  EXPECT_EQ(Ask({.node = 7, .number = 2}, 2).others, 200u + 50u)
      << "expired leases are stored between live ones";
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u - 2u);
  now += kTtl;
  EXPECT_EQ(Ask({.node = 7, .number = 3}, 0).others, 0u);
  EXPECT_EQ(Remaining(), 100'000u - 600u + 75u - 2u);
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
}

TEST_F(Leases, ALateReportGivesBackWhatIsCertainlyStillMissing) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  now += kTtl + 100ms;
  EXPECT_EQ(Remaining(), 70u);
  Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10}});
  EXPECT_EQ(Remaining(), 70u) << "no return";
  for (int i = 0; i < 2; ++i) {
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10, .returned = true}});
    EXPECT_EQ(Remaining(), 90u) << "30 less the 10 that have refilled since the end, once";
  }
}

TEST_F(Leases, ALateReportIsAcceptedAsLongAsTheWindowCounts) {
  constexpr Instant kBegin = Instant::FromNanos(1'790'000'000'000'000'000);
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    SCOPED_TRACE(Name(algorithm));
    Use({.algorithm = algorithm, .requests = 100, .period = 10s});
    const bool slides = algorithm == Algorithm::kSlidingWindowCounter;
    for (const auto& [at, before, after] :
         {std::tuple<Duration, uint64_t, uint64_t>{9s, 30, 60},
          // A sliding counter counts half of the previous window: of the 40 before the report, of
          // the 10 that were spent after it.
          {15s, slides ? 50 : 70, slides ? 65 : 70},
          {25s, 70, 70}}) {
      store.keyspace.Clear();
      now = kBegin + 5s;
      EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
      now = kBegin + at;
      EXPECT_TRUE(Take(30));
      EXPECT_EQ(Remaining(), before);
      for (int i = 0; i < 2; ++i) {
        Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10, .returned = true}});
        EXPECT_EQ(Remaining(), after);
      }
    }
  }
}

TEST_F(Leases, ABucketRemembersALimitedNumberOfEndedLeases) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 24h});
  for (uint64_t node = 1; node <= 129; ++node)
    ASSERT_EQ(Ask({.node = node << 16, .number = 1}, 1).granted, 1u);
  now += kTtl;
  EXPECT_TRUE(Take(1));
  EXPECT_EQ(Remaining(), 870u);
  const std::vector<store::LeaseReport> returned{{.number = 1, .spent = 0, .returned = true}};
  Ask({.node = 1 << 16, .number = 2}, 0, returned);
  EXPECT_EQ(Remaining(), 870u) << "the oldest is forgotten";
  Ask({.node = 2 << 16, .number = 2}, 0, returned);
  Ask({.node = 129 << 16, .number = 2}, 0, returned);
  EXPECT_EQ(Remaining(), 872u);
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
  EXPECT_EQ(refused.others, 512u);
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
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  EXPECT_EQ(Remaining(), 40u);
  now += 4s;
  EXPECT_EQ(Remaining(), 40u) << "expired: spent";
  EXPECT_EQ(Ask({.node = kNode, .number = 2}, 20).ttl, 1s);
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
    EXPECT_EQ(Ask({.node = kOther, .number = 1}, 0).others, 0u)
        << "the first lease ended with its window";
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
    EXPECT_EQ(Remaining(), algorithm == Algorithm::kFixedWindow ? left : left + 40)
        << "a return counts in the window of the lease, of which a sliding counter has the last "
           "two";
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

// A part of the rest is leased and returned, for random limits. The scripts must multiply and
// divide exactly as the C++ algorithms do.
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
      const auto parts = static_cast<uint32_t>(Between(random, 1, 40));
      const LeaseGrant grant = Ask(
          {.id = {.node = kNode, .number = 1}, .want = kU32Max, .brief = kU32Max, .parts = parts});
      // Shortly before the end of a window the brief part is smaller.
      uint64_t brief = kU32Max - 1;
      if (algorithm::IsWindow(algorithm) && grant.ttl < algorithm::kBrief)
        brief = brief * static_cast<uint64_t>(grant.ttl.count() / 1000) / 100'000;
      const uint64_t whole = std::min(left, kU32Max - 1);
      const bool few = whole < algorithm::kFewLeft && parts > 1;
      ASSERT_EQ(grant.granted, few ? 0 : std::max(whole / 32, std::min(brief, whole / parts)));
      ASSERT_EQ(decision.remaining, left - grant.granted);
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
