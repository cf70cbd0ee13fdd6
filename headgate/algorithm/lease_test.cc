// The promise of each function, from the definition in lease.h; reports that come after the end of
// a lease are in late_report_test.cc, the promises of all together in lease_properties_test.cc.
#include "headgate/algorithm/lease.h"

#include <gtest/gtest.h>

#include <tuple>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease_rig.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace lease_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;
using namespace lease_rig;

TEST(Lease, IsGrantedByTheseLimitsAndNoOthers) {
  const auto can = [](const LimitSpec& spec) { return CanLease(*Limit::Make(spec)); };
  const auto counting_denials = [](LimitSpec spec) {
    spec.count_denied = true;
    return spec;
  };
  EXPECT_TRUE(can(kHundredPerSecond));
  EXPECT_TRUE(can({.algorithm = Algorithm::kLeakyBucket, .requests = 1, .period = 1s}));
  EXPECT_TRUE(can(kWindow));
  EXPECT_TRUE(can(kMonth));
  EXPECT_TRUE(can(counting_denials(kWindow)));
  EXPECT_TRUE(can(kCounter));
  EXPECT_FALSE(can(counting_denials(kCounter)));
  EXPECT_FALSE(can(kQueue));
  EXPECT_FALSE(can(kLog));
  EXPECT_TRUE(KeepsLeases(Algorithm::kSlidingWindowCounter)) << "those of an earlier limit";
  EXPECT_FALSE(KeepsLeases(Algorithm::kLeakyBucketQueue));
  EXPECT_FALSE(KeepsLeases(Algorithm::kSlidingWindowLog));
}

// A fixed window that counts denied requests may be leased, because the first denial uses up the
// window.
TEST(Lease, ANodeMayDenyTheRestOfAFixedWindowThatCountsDenials) {
  LimitSpec spec = kWindow;
  spec.count_denied = true;
  Rig rig(spec);
  EXPECT_EQ(rig.Ask({kNode, 1}, 10).granted, 10u);
  EXPECT_FALSE(rig.Take(91));
  EXPECT_EQ(rig.Left(), 0u);
  Rig twice = rig;
  EXPECT_FALSE(twice.Take(1));
  for (Rig* either : {&rig, &twice}) {
    either->now = kBegin + 10s;
    EXPECT_EQ(either->Left(), 100u);
  }
}

TEST(Lease, IsAtMostOnePartIn32OfWhatIsLeft) {
  for (LimitSpec spec : kLeased) {
    SCOPED_TRACE(Name(spec.algorithm));
    spec.requests = 3200;
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 80}), (LeaseGrant{.granted = 80, .ttl = kTtl}));
    EXPECT_EQ(rig.decision.remaining, 3120u);
    EXPECT_EQ(rig.Ask({.id = {kOther, 1}, .want = 1000}),
              (LeaseGrant{.granted = 97, .others = 80, .others_until = kBegin + kTtl, .ttl = kTtl}))
        << "3120 / 32 = 97.5";
    EXPECT_TRUE(rig.Take(3023 - 31));
    EXPECT_EQ(rig.Ask({.id = {9, 1}, .want = 1000}).granted, 0u) << "less than 32 are left";
    EXPECT_TRUE(rig.Take(31));
    EXPECT_FALSE(rig.Take(1));
  }
}

TEST(Lease, IsNotGrantedOfFewLeftUnlessTheKeyIsOverloaded) {
  Rig rig({.algorithm = Algorithm::kTokenBucket, .requests = 63, .period = 63s});
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 10, .brief = 10, .parts = 2}).granted, 0u);
  EXPECT_EQ(rig.Ask({.id = {kNode, 2}, .want = 10, .brief = 10, .parts = 1}).granted, 10u);
}

// The small leases of two nodes are renewed for ever; one bucket would let the large request pass.
TEST(Lease, ARequestThatLeasesWithholdPassesWhenTheLastOfThemHasEnded) {
  Rig rig({.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 1s});
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 29}).granted, 29u);
  rig.now += 500ms;
  EXPECT_EQ(rig.Ask({.id = {kOther, 1}, .want = 29}).granted, 29u);
  const LeaseGrant denied = rig.Ask({.id = {9, 1}, .cost = 960});
  EXPECT_FALSE(rig.decision.allowed);
  EXPECT_EQ(denied.others, 58u);
  // 18 of them may have been spent.
  EXPECT_EQ(rig.decision.retry_after, kTtl + 18ms);
  rig.now += 1500ms;
  const std::array returned{LeaseReport{.number = 1, .spent = 0, .returned = true}};
  EXPECT_EQ(rig.Ask({.id = {kNode, 2}, .want = 29, .parts = 6, .reports = returned}).granted, 0u)
      << "while the request is withheld";
  EXPECT_EQ(rig.Ask({.id = {kNode, 3}, .want = 29, .parts = 1}).granted, 29u)
      << "the key is overloaded there";
  rig.now += 500ms + 18ms;
  const std::array again{LeaseReport{.number = 3, .spent = 0, .returned = true}};
  EXPECT_EQ(rig.Ask({.id = {kNode, 4}, .want = 29, .parts = 6, .reports = again}).granted, 0u)
      << "until the request can have come";
  rig.Ask({.id = {9, 2}, .cost = 960});
  EXPECT_TRUE(rig.decision.allowed);
  rig.now += 1s;
  EXPECT_EQ(rig.Ask({.id = {kNode, 5}, .want = 29, .parts = 6}).granted, 29u);
}

// A slow bucket needs hours for as much.
TEST(Lease, ARequestThatLeasesWithholdDoesNotWaitUntilTheyHaveRefilled) {
  Rig rig({.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 24h, .burst = 5000});
  EXPECT_TRUE(rig.Take(2000));
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 90}).granted, 90u);
  rig.Ask({.id = {9, 1}, .cost = 3000});
  EXPECT_EQ(rig.decision.retry_after, kTtl + kWithheldLonger / 2);
  EXPECT_TRUE(rig.leases.back().is_mark());
  rig.now += kTtl;
  const std::array returned{LeaseReport{.number = 1, .spent = 0, .returned = true}};
  rig.Ask({.id = {kNode, 2}, .reports = returned});
  EXPECT_FALSE(rig.Take(3001));
  EXPECT_TRUE(rig.Take(3000));
}

// Its cost is more than is left and out on lease together.
TEST(Lease, ARequestThatWouldNotPassWithoutLeasesLeavesNoMark) {
  Rig rig({.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 1h});
  EXPECT_TRUE(rig.Take(500));
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 14}).granted, 14u);
  rig.Ask({.id = {9, 1}, .cost = 1000});
  EXPECT_FALSE(rig.decision.allowed);
  EXPECT_GE(rig.decision.retry_after, 30min);
  EXPECT_EQ(rig.leases.size(), 1u);
}

// The rest of a window comes back when the lease ends, and not only when the window does.
TEST(Lease, ARequestThatLeasesWithholdInAWindowIsToldWhenTheLastOfThemEnds) {
  for (LimitSpec spec : kLeased) {
    if (!IsWindow(spec.algorithm)) continue;
    SCOPED_TRACE(Name(spec.algorithm));
    spec.requests = 1000;
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 31}).granted, 31u);
    EXPECT_TRUE(rig.Take(969));
    const LeaseGrant denied = rig.Ask({.id = {9, 1}, .cost = 31});
    EXPECT_FALSE(rig.decision.allowed);
    EXPECT_EQ(rig.decision.retry_after, kTtl + kWithheldLonger / 2);
    EXPECT_EQ(denied.next_after, kTtl + kWithheldLonger / 2);
    rig.Ask({.id = {9, 1}, .cost = 32});
    EXPECT_GT(rig.decision.retry_after, kTtl + kWithheldLonger) << "it would not fit then";
  }
}

TEST(Lease, OrIsBriefAndAtMostOnePartOfWhatIsLeft) {
  for (const LimitSpec& spec : kLeased) {
    SCOPED_TRACE(Name(spec.algorithm));
    const auto granted = [&](uint64_t want, uint64_t brief, uint32_t parts) {
      return Rig(spec)
          .Ask({.id = {kNode, 1}, .want = want, .brief = brief, .parts = parts})
          .granted;
    };
    EXPECT_EQ(granted(80, 20, 1), 20u);
    EXPECT_EQ(granted(80, 20, 4), 20u);
    EXPECT_EQ(granted(80, 30, 4), 25u);
    EXPECT_EQ(granted(80, 200, 1), 100u) << "all of it, if it will be spent at once";
    EXPECT_EQ(granted(80, 200, 0), 100u) << "0 parts are one";
    EXPECT_EQ(granted(80, 2, 1), 3u) << "100 / 32: the small one is larger";
    EXPECT_EQ(granted(0, 20, 1), 0u) << "none was wanted";
  }
}

// A part of them would be one request. The requests that the node holds count, because it may
// return them.
TEST(Lease, OfFewerThan64OnlyANodeThatMayTakeAllIsGrantedSome) {
  for (const LimitSpec& spec : kLeased) {
    SCOPED_TRACE(Name(spec.algorithm));
    for (const auto& [taken, held, parts, granted] :
         {std::tuple<Cost, uint64_t, uint32_t, uint64_t>{36, 0, 2, 32},
          {37, 0, 2, 0},
          {37, 0, 1, 40},
          {36, 10, 2, 22},
          {37, 10, 2, 0}}) {
      SCOPED_TRACE(taken);
      Rig rig(spec);
      if (held > 0) {
        ASSERT_EQ(rig.Ask({.id = {kNode, 1}, .want = held, .brief = held}).granted, held);
      }
      ASSERT_TRUE(rig.Take(taken));
      EXPECT_EQ(rig.Ask({.id = {kNode, 2}, .want = 40, .brief = 40, .parts = parts}).granted,
                granted);
    }
  }
}

TEST(Lease, ABriefLeaseIsNoMoreThanCanBeSpentUntilTheWindowEnds) {
  for (const LimitSpec& spec : {kWindow, kCounter}) {
    SCOPED_TRACE(Name(spec.algorithm));
    for (const auto& [left, granted] : {std::pair<Duration, uint64_t>{10s, 40},
                                        {100ms, 40},
                                        {25ms, 10},
                                        {25ms - 1ns, 9},
                                        {1ms, 3}}) {
      Rig rig(spec);
      rig.now = kBegin + 10s - left;
      EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 40, .brief = 40}).granted, granted)
          << left.count();
    }
  }
}

TEST(Lease, ANodeHoldsNoMoreThanThatInAll) {
  for (const LimitSpec& spec : kLeased) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    LeaseAsk ask{.id = {kNode, 1}, .want = 80, .brief = 30, .parts = 4};
    EXPECT_EQ(rig.Ask(ask).granted, 25u);
    ask.id.number = 2;
    EXPECT_EQ(rig.Ask(ask).granted, 0u) << "(75 + 25) / 4 = 25";
    const std::vector<LeaseReport> spent{{.number = 1, .spent = 10}};
    ask.reports = spent;
    EXPECT_EQ(rig.Ask(ask).granted, 7u) << "15 are held, and (75 + 15) / 4 = 22.5";
    ask.id.node = kOther;
    const LeaseGrant other = rig.Ask(ask);
    EXPECT_EQ(other.granted, 17u) << "68 / 4";
    EXPECT_EQ(other.others, 22u);
  }
}

TEST(Lease, WhatANodeReturnsInTheSameMessageIsThereForItsRequest) {
  for (const LimitSpec& spec : kLeased) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 60).granted, 60u);
    EXPECT_TRUE(rig.Take(40));
    const std::vector<LeaseReport> returned{{.number = 1, .spent = 10, .returned = true}};
    const LeaseGrant grant =
        rig.Ask({.id = {kNode, 2}, .cost = 45, .want = 80, .brief = 80, .reports = returned});
    EXPECT_TRUE(rig.decision.allowed);
    EXPECT_EQ(grant.granted, 5u) << "the rest";
    EXPECT_EQ(rig.decision.remaining, 0u);
    EXPECT_EQ(rig.Left(), 0u);
  }
}

TEST(Lease, TheRequestInTheMessageIsDecidedLikeAnyOther) {
  std::vector<LimitSpec> specs(kLeased.begin(), kLeased.end());
  for (const LimitSpec& spec : kLeased) {
    specs.push_back(spec);
    if (IsWindow(spec.algorithm)) specs.back().count_denied = true;
  }
  for (const LimitSpec& spec : specs) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    Rig plain(spec);
    testing::DequeHitLog no_hits;
    uint64_t number = 0;
    for (const Cost cost : {0u, 1u, 60u, 50u, 101u, 39u, 1u, 0u, 20u}) {
      const Decision expected = Decide(plain.limit, plain.state, no_hits, cost, plain.now);
      const LeaseGrant grant = rig.Ask({.id = {kNode, ++number}, .cost = cost});
      EXPECT_EQ(rig.decision, expected) << cost;
      EXPECT_EQ(grant.granted, 0u);
      EXPECT_EQ(rig.Left(), plain.Left()) << cost;
      rig.now += 10ms;
      plain.now += 10ms;
    }
  }
}

TEST(Lease, IsNotGrantedWithADenial) {
  for (const LimitSpec& spec : kLeased) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .cost = 101, .want = 10, .brief = 10}).granted, 0u);
    EXPECT_FALSE(rig.decision.allowed);
    EXPECT_EQ(rig.decision.remaining, 100u);
    EXPECT_TRUE(rig.leases.empty());
  }
}

// Costs of 1 and more are asked for, and nobody holds a lease.
TEST(Lease, TheNextRequestCouldPassAtTheMomentNamedAndNoEarlier) {
  std::vector<LimitSpec> specs(kLeased.begin(), kLeased.end());
  specs.push_back(kCounter);
  specs.back().count_denied = true;
  for (const LimitSpec& spec : specs) {
    SCOPED_TRACE(Name(spec.algorithm));
    for (const Cost cost : {0u, 1u, 7u, 100u}) {
      Rig rig(spec);
      rig.now = kBegin + 5s;
      EXPECT_TRUE(rig.Take(100 - cost));
      const LeaseGrant grant = rig.Ask({.id = {kNode, 1}, .cost = cost});
      EXPECT_TRUE(rig.decision.allowed);
      ASSERT_GT(grant.next_after, 0s) << "nothing is left";
      rig.now += grant.next_after - 1ns;
      EXPECT_FALSE(Rig(rig).Take(std::max<Cost>(1, cost))) << cost;
      rig.now += 1ns;
      EXPECT_TRUE(rig.Take(std::max<Cost>(1, cost))) << cost;
    }
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .cost = 50}).next_after, 0s) << "once more";
    EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .cost = 101}).next_after, kNever);
  }
  Rig rig(kHundredPerSecond);
  EXPECT_TRUE(rig.Take(98));
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .cost = 8}).next_after, 60ms) << "six more tokens";
  EXPECT_EQ(rig.decision.retry_after, 60ms);
}

// Requests that are unspent when a window ends are lost to everybody.
TEST(Lease, IsOnlyForTheTimeThatIsLeftOfAWindow) {
  Rig rig(kWindow);
  rig.now = kBegin + 10s - 25ms;
  EXPECT_EQ(rig.Ask({.id = {kNode, 1}, .want = 1, .brief = 80, .parts = 1, .ttl = kTtl}).granted,
            20u)
      << "a quarter of 100 ms";
}

TEST(Lease, ToTheSameAskIsTheSame) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 20).granted, 20u);
  rig.now += 500ms;
  const Rig before = rig;
  EXPECT_EQ(rig.Ask({kNode, 1}, 99), (LeaseGrant{.granted = 20, .ttl = kTtl - 500ms}));
  EXPECT_EQ(rig.decision.remaining, 80u);
  EXPECT_EQ(rig.leases, before.leases);
}

TEST(Lease, AnAskThatComesAgainTakesItsRequestOnce) {
  for (const LimitSpec& spec : {kWindow, kCounter}) {
    Rig rig(spec);
    const LeaseAsk ask{.id = {kNode, 1}, .cost = 5, .want = 20, .brief = 20};
    EXPECT_EQ(rig.Ask(ask).granted, 20u);
    EXPECT_EQ(rig.Ask(ask).granted, 20u);
    EXPECT_TRUE(rig.decision.allowed);
    EXPECT_EQ(rig.Left(), 75u);
    rig.now += kTtl;
    EXPECT_EQ(rig.Ask(ask).granted, 0u) << "its lease has ended";
    EXPECT_TRUE(rig.decision.allowed);
    EXPECT_EQ(rig.Left(), 75u);
  }
}

// So an undo gives back no more than the bucket still lacks.
TEST(Lease, OfAnAskThatCameTwiceShowsWhenItsRequestWasTaken) {
  Rig rig(kHundredPerSecond);
  const Instant taken_at = rig.now;
  for (const Duration later : {0ms, 700ms}) {
    rig.now += later;
    EXPECT_EQ(TakenAt(rig.limit, rig.Ask({kNode, 1}, 20), kTtl, rig.now), taken_at);
  }
  EXPECT_EQ(TakenAt(rig.limit, {}, kTtl, rig.now), rig.now) << "without a lease";
}

TEST(Lease, LeavesNoRoomForWhatItHolds) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.now += 1900ms;  // the bucket would be full twice over
  EXPECT_EQ(rig.Left(), 60u);
  rig.Report({{.number = 1, .spent = 30}});
  EXPECT_EQ(rig.Left(), 60u);
  rig.now += 50ms;
  EXPECT_EQ(rig.Left(), 65u) << "what is reported is refilled";
}

TEST(Lease, CountsAsSpentWhenItExpires) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  for (const auto& [after, left] : {std::pair<Duration, uint64_t>{kTtl - 1ns, 60},
                                    {kTtl, 60},
                                    {kTtl + 100ms, 70},
                                    {kTtl + 400ms, 100}}) {
    rig.now = kBegin + after;
    EXPECT_EQ(rig.Left(), left) << after.count();
  }
}

TEST(Lease, ReturnsWhatIsUnspentOnce) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kCounter}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.Report({{.number = 1, .spent = 10}});
    rig.Report({{.number = 1, .spent = 5}});
    EXPECT_EQ(rig.leases.front().reported, 10u) << "an older report";
    rig.Report({{.number = 1, .spent = 0, .returned = true}}, kOther);
    EXPECT_EQ(rig.Left(), 60u) << "another node's";
    for (int i = 0; i < 2; ++i) {
      rig.Report({{.number = 1, .spent = 15, .returned = true}});
      EXPECT_EQ(rig.Left(), 85u);
    }
    EXPECT_TRUE(rig.leases.empty());
  }
}

TEST(Lease, ReportsNoMoreThanWasGranted) {
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.Report({{.number = 1, .spent = ~uint64_t{0}, .returned = true}});
  EXPECT_EQ(rig.Left(), 60u);
}

TEST(Lease, IsNotRefundedAway) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kCounter}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    EXPECT_TRUE(rig.Take(10));
    EXPECT_EQ(RefundLeased(rig.limit, rig.state, rig.leases, 100, rig.now).remaining, 60u);
  }
}

TEST(Lease, ABucketHasAtMost512Leases) {
  Rig rig({.requests = 1'000'000, .period = 1s});
  for (uint64_t i = 1; i <= kLeasesMax; ++i) ASSERT_EQ(rig.Ask({i, 1}, 1).granted, 1u);
  const LeaseGrant refused = rig.Ask({513, 1}, 1);
  EXPECT_EQ(refused.granted, 0u);
  EXPECT_EQ(refused.others, 512u);
  EXPECT_EQ(refused.next_after, 0s) << "there is enough, but no place";
  EXPECT_EQ(rig.Ask({1, 2}, 1, {{.number = 1, .spent = 1, .returned = true}}).granted, 1u);
}

TEST(Lease, AllTogetherStayBelow32Bits) {
  Rig rig({.requests = 40'000'000'000, .period = 3600s});
  const auto granted = [&](LeaseId id, uint32_t parts) {
    return rig.Ask({.id = id, .want = ~uint64_t{0}, .brief = ~uint64_t{0}, .parts = parts}).granted;
  };
  EXPECT_EQ(granted({kNode, 1}, 2), 0x7fff'ffffu) << "no more than 2^32 − 2 count as left";
  EXPECT_EQ(granted({kOther, 1}, 1), 0x7fff'ffffu) << "all that there is room for";
  EXPECT_EQ(granted({9, 1}, 1), 0u);
}

TEST(Lease, ALeaseOfAWindowEndsWithTheWindow) {
  Rig rig(kWindow);
  rig.now = kBegin + 9s;
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).ttl, 1s);
  rig.now = kBegin + 10s;
  EXPECT_EQ(rig.Left(), 100u);
  rig.Report({{.number = 1, .spent = 5, .returned = true}});
  EXPECT_EQ(rig.Left(), 100u) << "nothing comes back into another window";

  Rig month(kMonth);
  month.now =
      Instant::FromNanos(1'790'812'800'000'000'000) - 1s;  // the last second of September 2026
  EXPECT_EQ(month.Ask({kNode, 1}, 40).ttl, 1s);
}

TEST(Lease, ALeaseOfASlidingCounterCountsInTheWindowOfItsGrant) {
  Rig rig(kCounter);
  rig.now = kBegin + 5s;
  EXPECT_TRUE(rig.Take(20));
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.now += 4s;
  EXPECT_EQ(rig.Left(), 40u) << "expired: spent";
  EXPECT_EQ(rig.Ask({kNode, 2}, 20).ttl, 1s);
  rig.now += 6s;  // half of the next window: 80 count half
  EXPECT_EQ(rig.Left(), 60u);
}

TEST(Lease, AChargeTakesAllAndWhatIsOutOnLeaseIsNotThere) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kCounter}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    const auto charge = [&] { return ChargeLeased(rig.limit, rig.state, rig.leases, 50, rig.now); };
    EXPECT_EQ(charge().remaining, 10u);
    EXPECT_FALSE(charge().remaining > 0);
    EXPECT_TRUE(charge().overdrawn);
    EXPECT_EQ(rig.Ask({kNode, 2}, 1).granted, 0u);
  }
}

TEST(Lease, AnUndoLeavesWhatIsOutOnLeaseTaken) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kCounter}) {
    Rig rig(spec);
    EXPECT_TRUE(rig.Take(30));
    EXPECT_EQ(rig.Ask({kNode, 1}, 30).granted, 30u);
    const auto undo = [&] {
      return UndoLeased(rig.limit, rig.state, rig.leases, 30, rig.now, rig.now).remaining;
    };
    EXPECT_EQ(undo(), 70u);
    EXPECT_EQ(undo(), 70u);
  }
}

TEST(Lease, ALeaseOfAnotherLimitCountsUntilItExpires) {
  for (const LimitSpec& to :
       {kWindow, kCounter, LimitSpec{.requests = 100, .period = 10s}, kLog, kQueue}) {
    SCOPED_TRACE(Name(to.algorithm));
    Rig rig(kHundredPerSecond);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.now += kTtl / 2;
    testing::DequeHitLog hits;
    RememberedUntil remembered_until{};
    HoldLeases(rig.limit, rig.leases, rig.state, hits, rig.now);
    Change(rig.limit, *Limit::Make(to), rig.state, hits, remembered_until, rig.now);
    rig.limit = *Limit::Make(to);
    HoldLeases(rig.limit, rig.leases, rig.state, hits, rig.now);
    DropLeases(rig.limit, rig.leases, rig.now);
    EXPECT_EQ(rig.leases.size(), KeepsLeases(to.algorithm) ? 1u : 0u);
    // A queue has one place more, for the request that goes at once.
    const uint64_t whole = to.algorithm == Algorithm::kLeakyBucketQueue ? 100u : 60u;
    EXPECT_LE(Decide(rig.limit, rig.state, hits, 0, rig.now).remaining, whole);
    EXPECT_GE(Decide(rig.limit, rig.state, hits, 0, rig.now).remaining, 59u);
  }
}

TEST(Lease, ALeaseOfAnEarlierLimitCountsInTheWindowThatItReachesInto) {
  for (const LimitSpec& spec : {kWindow, kCounter}) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    rig.now = kBegin + 9s;
    EXPECT_TRUE(rig.Take(40));
    rig.leases = {{.id = {kNode, 1}, .granted = 40, .reported = 0, .expires_at = kBegin + 11s}};
    for (const uint64_t seconds : {10u, 11u, 15u}) {
      rig.now = kBegin + std::chrono::seconds(seconds);
      // A sliding counter weighs what was taken in the window before.
      const uint64_t carried =
          spec.algorithm == Algorithm::kFixedWindow ? 0 : 40 * (20 - seconds) / 10;
      EXPECT_EQ(rig.Left(), 60 - carried) << seconds;
    }
  }
}

TEST(Lease, IsMovedWithTheClockThatIsSetBack) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kFirstHit, kMonth, kCounter}) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    EXPECT_TRUE(rig.Take(10));
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    RememberedUntil remembered_until{rig.now + 7s};
    rig.now = rig.now - 24h;
    SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
    EXPECT_EQ(rig.Left(), 50u);
    EXPECT_EQ(remembered_until, rig.now + 7s);
    EXPECT_EQ(rig.leases.front().expires_at, rig.now + kTtl);
    rig.Report({{.number = 1, .spent = 0, .returned = true}});
    EXPECT_EQ(rig.Left(), 90u);
  }
  for (const LimitSpec& spec : kLeased) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.now += kTtl;
    rig.Report({});
    ASSERT_TRUE(rig.leases.front().has_ended());
    RememberedUntil remembered_until{};
    rig.now = rig.now - 24h;
    SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
    EXPECT_TRUE(rig.leases.empty()) << "nobody knows in which window it counts";
    EXPECT_EQ(rig.Left(), 60u);
  }
  // The window of now may end sooner than the lease would.
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  RememberedUntil remembered_until{};
  rig.now = kBegin - 3600s + 9500ms;
  SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
  EXPECT_EQ(rig.leases.front().expires_at, rig.now + 500ms);
}

TEST(Lease, AWindowThatWasOverStaysOverWhenTheClockIsSetBack) {
  Rig rig(kWindow);
  EXPECT_TRUE(rig.Take(10));
  rig.state.seen = kBegin + 11s;  // the window is over
  RememberedUntil remembered_until{};
  rig.now = kBegin - 3600s;
  SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
  EXPECT_EQ(rig.Left(), 100u);
}

TEST(Lease, ABucketIsKeptUntilTheLastIsRefilled) {
  Rig rig(kHundredPerSecond);
  EXPECT_LE(rig.Until(), rig.now);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  EXPECT_EQ(rig.Until(), kBegin + kTtl + 400ms);
  rig.Report({{.number = 1, .spent = 40}});
  EXPECT_EQ(rig.Until(), kBegin + kTtl) << "so that a repeated ask is known";
  rig.Report({{.number = 1, .spent = 40, .returned = true}});
  EXPECT_EQ(rig.Until(), kBegin + 400ms);

  Rig window(kWindow);
  EXPECT_EQ(window.Ask({kNode, 1}, 40).granted, 40u);
  EXPECT_EQ(window.Until(), kBegin + 10s);
  Rig counter(kCounter);
  EXPECT_EQ(counter.Ask({kNode, 1}, 40).granted, 40u);
  EXPECT_EQ(counter.Until(), kBegin + 20s);
}

TEST(Lease, ALimitOfNothingLeavesBucketAndLeasesAsTheyAre) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  const Rig before = rig;
  rig.limit = *Limit::Make({.requests = 0, .period = 1s});
  rig.now += 10s;
  EXPECT_FALSE(rig.Take(1));
  EXPECT_EQ(rig.Ask({kNode, 2}, 40).next_after, kNever);
  rig.Ask({.id = {kNode, 2}, .cost = 1});
  EXPECT_FALSE(rig.decision.allowed);
  ChargeLeased(rig.limit, rig.state, rig.leases, 50, rig.now);
  EXPECT_EQ(rig.leases, before.leases);
  EXPECT_EQ(rig.state, before.state);
}

}  // namespace lease_test
}  // namespace headgate::algorithm
