// The promise of each function, from the definition in lease.h; the promises of all together are in
// lease_properties_test.cc.
#include "headgate/algorithm/lease.h"

#include <gtest/gtest.h>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace lease_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Duration kTtl = 2s;
constexpr uint64_t kNode = 7;
constexpr uint64_t kOther = 8;
// A multiple of 10 s, so that windows of 10 s and 1 s begin there.
constexpr Instant kBegin = Instant::FromNanos(1'790'000'000'000'000'000);

class Rig {
 public:
  explicit Rig(const LimitSpec& spec) : limit(*Limit::Make(spec)) {}

  LeaseGrant Ask(LeaseId id, uint64_t want, std::vector<LeaseReport> reports = {},
                 uint64_t least = 1) {
    return AskLease(limit, state, leases,
                    {.id = id, .want = want, .least = least, .ttl = kTtl, .reports = reports}, now);
  }
  // Only reports.
  LeaseGrant Report(std::vector<LeaseReport> reports, uint64_t node = kNode) {
    return Ask({.node = node, .number = 1'000}, 0, std::move(reports));
  }
  bool Take(Cost cost) { return DecideLeased(limit, state, leases, cost, now).allowed; }
  uint64_t Left() const {
    BucketState copy = state;
    Leases copies = leases;
    return DecideLeased(limit, copy, copies, 0, now).remaining;
  }
  Instant Until() const { return KeptUntil(limit, state, leases, now); }

  Limit limit;
  BucketState state{};
  Leases leases{};
  Instant now = kBegin;
};

const LimitSpec kHundredPerSecond{.requests = 100, .period = 1s};
const LimitSpec kWindow{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 10s};
const LimitSpec kFirstHit{.algorithm = Algorithm::kFixedWindow,
                          .requests = 100,
                          .period = 10s,
                          .align = Align::kFirstHit};
const LimitSpec kMonth{
    .algorithm = Algorithm::kFixedWindow, .requests = 100, .align = Align::kCalendarMonth};
const LimitSpec kCounter{
    .algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 10s};
const LimitSpec kLog{.algorithm = Algorithm::kSlidingWindowLog, .requests = 100, .period = 10s};
const LimitSpec kQueue{
    .algorithm = Algorithm::kLeakyBucketQueue, .requests = 100, .period = 10s, .burst = 99};

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

TEST(Lease, IsHalfOfAnEvenShareOfWhatIsLeft) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kFirstHit, kMonth, kCounter}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 80),
              (LeaseGrant{.granted = 50, .remaining = 50, .holders = 1, .ttl = kTtl}));
    EXPECT_EQ(rig.Ask({kOther, 1}, 80),
              (LeaseGrant{.granted = 12, .remaining = 38, .holders = 2, .ttl = kTtl}));
    EXPECT_EQ(rig.Ask({kOther, 2}, 5).granted, 5u);
    EXPECT_TRUE(rig.Take(33));
    EXPECT_FALSE(rig.Take(1));
  }
}

TEST(Lease, IsNotLessThanWasAskedFor) {
  Rig rig(kHundredPerSecond);
  EXPECT_TRUE(rig.Take(90));
  EXPECT_EQ(rig.Ask({kNode, 1}, 80, {}, 8).granted, 8u);
  EXPECT_EQ(rig.Ask({kOther, 1}, 80, {}, 8).retry_after, 60ms) << "six more tokens";
  EXPECT_EQ(rig.Ask({kOther, 1}, 80, {}, 101).retry_after, kNever);
  EXPECT_EQ(rig.Ask({kOther, 1}, 0, {}, 101), (LeaseGrant{.remaining = 2, .holders = 2}))
      << "nothing was wanted";
}

TEST(Lease, ToTheSameAskIsTheSame) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 20).granted, 20u);
  rig.now += 500ms;
  const Rig before = rig;
  EXPECT_EQ(
      rig.Ask({kNode, 1}, 99),
      (LeaseGrant{
          .granted = 20, .remaining = 80, .holders = 1, .ttl = kTtl - 500ms, .retry_after = 0s}));
  EXPECT_EQ(rig.leases, before.leases);
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
  rig.Report({{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(rig.Left(), 100u) << "too late";
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
  EXPECT_EQ(refused.holders, 513u);
  EXPECT_EQ(refused.retry_after, 1ns) << "there is enough, but no place";
  EXPECT_EQ(rig.Ask({1, 2}, 1, {{.number = 1, .spent = 1, .returned = true}}).granted, 1u);
}

TEST(Lease, AllTogetherStayBelow32Bits) {
  Rig rig({.requests = 40'000'000'000, .period = 3600s});
  EXPECT_EQ(rig.Ask({kNode, 1}, ~uint64_t{0}).granted, 0xffff'ffffu / 2)
      << "no more than 2^32 − 1 count as left";
  EXPECT_EQ(rig.Ask({kNode, 2}, ~uint64_t{0}).granted, 0xffff'ffffu / 2);
  EXPECT_EQ(rig.Ask({kNode, 3}, ~uint64_t{0}).granted, 1u);
  EXPECT_EQ(rig.Ask({kNode, 4}, ~uint64_t{0}).granted, 0u);
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
  EXPECT_EQ(rig.Ask({kNode, 1}, 100).granted, 40u);
  rig.now += 4s;
  EXPECT_EQ(rig.Left(), 40u) << "expired: spent";
  EXPECT_EQ(rig.Ask({kNode, 2}, 100).ttl, 1s);
  rig.now += 6s;  // half of the next window: 80 count half
  EXPECT_EQ(rig.Left(), 60u);
}

TEST(Lease, ADebitTakesWhatIsLeft) {
  for (const LimitSpec& spec : {kHundredPerSecond, kWindow, kCounter}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    EXPECT_EQ(Debit(rig.limit, rig.state, rig.leases, 50, rig.now), 50u);
    EXPECT_EQ(Debit(rig.limit, rig.state, rig.leases, 50, rig.now), 10u)
        << "what is out on lease is not there";
    EXPECT_EQ(rig.Left(), 0u);
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
    Instant remembered_until{0};
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
    Instant remembered_until = rig.now + 7s;
    rig.now = rig.now - 24h;
    SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
    EXPECT_EQ(rig.Left(), 50u);
    EXPECT_EQ(remembered_until, rig.now + 7s);
    EXPECT_EQ(rig.leases.front().expires_at, rig.now + kTtl);
    rig.Report({{.number = 1, .spent = 0, .returned = true}});
    EXPECT_EQ(rig.Left(), 90u);
  }
  // The window of now may end sooner than the lease would.
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  Instant remembered_until{0};
  rig.now = kBegin - 3600s + 9500ms;
  SetBackLeased(rig.limit, rig.state, rig.leases, remembered_until, rig.now);
  EXPECT_EQ(rig.leases.front().expires_at, rig.now + 500ms);
}

TEST(Lease, AWindowThatWasOverStaysOverWhenTheClockIsSetBack) {
  Rig rig(kWindow);
  EXPECT_TRUE(rig.Take(10));
  rig.state.seen = kBegin + 11s;  // the window is over
  Instant remembered_until{0};
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
  EXPECT_EQ(rig.Ask({kNode, 2}, 40).retry_after, kNever);
  EXPECT_EQ(Debit(rig.limit, rig.state, rig.leases, 50, rig.now), 0u);
  EXPECT_EQ(rig.leases, before.leases);
  EXPECT_EQ(rig.state, before.state);
}

}  // namespace lease_test
}  // namespace headgate::algorithm
