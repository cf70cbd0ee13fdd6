// Reports of leases that have ended: what they give back, from the definition of AskLease.
#include <gtest/gtest.h>

#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/lease_rig.h"

namespace headgate::algorithm {
namespace late_report_test {

using base::Duration;
using namespace std::chrono_literals;
using namespace lease_rig;

TEST(LateReport, IsAReturn) {
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.now += kTtl;
  rig.Report({{.number = 1, .spent = 10}});
  EXPECT_EQ(rig.Left(), 60u) << "the node may still speak of it";
  rig.Report({{.number = 1, .spent = 10, .returned = true}}, kOther);
  EXPECT_EQ(rig.Left(), 60u) << "another node's";
  rig.Report({{.number = 1, .spent = 10, .returned = true}});
  EXPECT_EQ(rig.Left(), 90u);
}

// 30 of 40 were not spent. They refill in 300 ms, some of which have passed since the end.
TEST(LateReport, GivesATokenBucketWhatHasNotRefilledSinceTheEnd) {
  for (const auto& [after, before, then] : {std::tuple<Duration, uint64_t, uint64_t>{0ms, 60, 90},
                                            {100ms, 70, 90},
                                            {290ms, 89, 90},
                                            {300ms, 90, 90},
                                            {350ms, 95, 95},
                                            {400ms, 100, 100},
                                            {1h, 100, 100}}) {
    SCOPED_TRACE(after.count());
    Rig rig(kHundredPerSecond);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.Report({{.number = 1, .spent = 5}});
    rig.now = kBegin + kTtl + after;
    // The 5 that were reported two seconds ago have refilled: 35 were out at the end.
    EXPECT_EQ(rig.Left(), std::min<uint64_t>(100, before + 5));
    for (int i = 0; i < 2; ++i) {
      rig.Report({{.number = 1, .spent = 10, .returned = true}});
      EXPECT_EQ(rig.Left(), std::min<uint64_t>(100, then + 5)) << "never twice";
    }
  }
}

// A bucket that had lent nothing would have been full in between, and would have lost what it could
// not hold.
TEST(LateReport, LeavesNoMoreThanABucketThatHadLentNothing) {
  Rig rig({.requests = 10, .period = 1s});
  EXPECT_EQ(rig.Ask({kNode, 1}, 5).granted, 5u);
  rig.now += kTtl + 400ms;
  EXPECT_TRUE(rig.Take(9));
  EXPECT_EQ(rig.Left(), 0u);
  rig.Report({{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(rig.Left(), 1u) << "10 − 9";
}

TEST(LateReport, GivesNothingBackThatOtherLeasesHold) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.now += 1s;
  EXPECT_EQ(rig.Ask({kOther, 1}, 60).granted, 60u);
  rig.now += 1s;
  EXPECT_EQ(rig.Left(), 0u);
  // A client's refund, so that less is missing than the late report would give.
  EXPECT_EQ(RefundLeased(rig.limit, rig.state, rig.leases, 100, rig.now).remaining, 40u);
  EXPECT_EQ(rig.Report({{.number = 1, .spent = 0, .returned = true}}).others, 60u);
  EXPECT_EQ(rig.Left(), 40u);
}

TEST(LateReport, CountsInTheSameFixedWindowOnly) {
  for (const LimitSpec& spec : {kWindow, kFirstHit}) {
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    EXPECT_TRUE(rig.Take(10));
    rig.now = kBegin + 9s;
    EXPECT_EQ(rig.Ask({kNode, 2}, 20).ttl, 1s);
    EXPECT_EQ(rig.Left(), 30u);
    Rig next = rig;
    for (int i = 0; i < 2; ++i) {
      rig.Report({{.number = 1, .spent = 10, .returned = true}});
      EXPECT_EQ(rig.Left(), 60u) << "never twice";
    }
    next.now = kBegin + 10s;
    EXPECT_TRUE(next.Take(50));
    for (const uint64_t number : {1u, 2u}) {
      next.Report({{.number = number, .spent = 0, .returned = true}});
      EXPECT_EQ(next.Left(), 50u);
    }
    EXPECT_TRUE(next.leases.empty());
  }
}

TEST(LateReport, DoesNotCountInAWindowThatALeaseOfAnEarlierLimitOpens) {
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  EXPECT_TRUE(rig.Take(30));  // granted as a lease under the earlier limit
  rig.leases.push_back(
      {.id = {kOther, 1}, .granted = 30, .reported = 0, .expires_at = kBegin + 11s});
  rig.now = kBegin + 5s;
  EXPECT_EQ(rig.Left(), 30u);
  rig.Report({});  // ends the first lease
  rig.now = kBegin + 10s;
  EXPECT_EQ(rig.Left(), 70u);
  EXPECT_TRUE(rig.Take(10));
  rig.Report({{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(rig.Left(), 60u);
  // The lease of the other node ended in this window, so its unspent requests come back.
  rig.now = kBegin + 12s;
  rig.Report({{.number = 1, .spent = 10, .returned = true}}, kOther);
  EXPECT_EQ(rig.Left(), 80u);
}

// In windows of 10 s; 30 requests of a lease of 40 that ended at 7 s were not spent.
TEST(LateReport, CountsInThePresentAndThePreviousWindowOfASlidingCounter) {
  for (const auto& [at, before, then] : {std::tuple<Duration, uint64_t, uint64_t>{8s, 60, 90},
                                         {10s, 60, 90},
                                         {15s, 80, 95},
                                         {19s, 96, 99},
                                         {20s, 100, 100}}) {
    SCOPED_TRACE(at.count());
    Rig rig(kCounter);
    rig.now = kBegin + 5s;
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.now = kBegin + at;
    EXPECT_EQ(rig.Left(), before);
    for (int i = 0; i < 2; ++i) {
      rig.Report({{.number = 1, .spent = 10, .returned = true}});
      EXPECT_EQ(rig.Left(), then) << "never twice";
    }
  }
  // The report lowers only the count of the window in which the lease ended.
  Rig rig(kCounter);
  rig.now = kBegin + 9s;
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).ttl, 1s) << "it ends with its window";
  rig.now = kBegin + 15s;
  EXPECT_TRUE(rig.Take(50));
  rig.Report({{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(rig.Left(), 50u);
  rig.now = kBegin + 25s;
  EXPECT_EQ(rig.Left(), 75u);
}

TEST(LateReport, AnEndedLeaseIsRememberedAsLongAsALateReportCouldGiveSomethingBack) {
  for (const auto& [spec, until] : {std::pair<LimitSpec, Duration>{kHundredPerSecond, kTtl + 400ms},
                                    {kWindow, 10s},
                                    {kFirstHit, 10s},
                                    {kCounter, 20s}}) {
    SCOPED_TRACE(Name(spec.algorithm));
    Rig rig(spec);
    EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
    rig.now = kBegin + until - 1ns;
    ExpireLeases(rig.limit, rig.state, rig.leases, rig.now);
    ASSERT_EQ(rig.leases.size(), 1u);
    EXPECT_TRUE(rig.leases.front().has_ended());
    EXPECT_EQ(rig.leases.front().outstanding(), 0u);
    rig.now += 1ns;
    ExpireLeases(rig.limit, rig.state, rig.leases, rig.now);
    EXPECT_TRUE(rig.leases.empty());
  }
  Rig rig(kWindow);
  EXPECT_EQ(rig.Ask({kNode, 1}, 40).granted, 40u);
  rig.Report({{.number = 1, .spent = 40}});
  rig.now += kTtl;
  rig.Report({});
  EXPECT_TRUE(rig.leases.empty()) << "nothing was left of it";
}

TEST(LateReport, ATokenBucketThatIsNeverFullForgetsWhatHasRefilled) {
  Rig rig(kHundredPerSecond);
  EXPECT_EQ(rig.Ask({1, 1}, 20).granted, 20u);
  EXPECT_EQ(rig.Ask({2, 1}, 40).granted, 40u);
  rig.now += kTtl - 10ms;
  EXPECT_EQ(rig.Ask({3, 1}, 40).granted, 40u);
  // The first two end, and the bucket never fills.
  for (rig.now = kBegin + kTtl; rig.now < kBegin + 2 * kTtl - 10ms; rig.now += 10ms) rig.Take(1);
  EXPECT_EQ(rig.leases.size(), 3u);
  rig.Take(1);
  ASSERT_EQ(rig.leases.size(), 1u) << "when the third ends";
  EXPECT_EQ(rig.leases.front().id.node, 3u);
  EXPECT_GT(rig.Until(), rig.now);
}

TEST(LateReport, ABucketRemembers128EndedLeases) {
  Rig rig(kWindow);
  rig.limit = *Limit::Make({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 10s});
  for (uint64_t node = 1; node <= kEndedLeasesMax; ++node)
    ASSERT_EQ(rig.Ask({node, 1}, 1).granted, 1u);
  rig.now += kTtl;
  ASSERT_EQ(rig.Ask({1000, 1}, 1).granted, 1u);
  EXPECT_EQ(rig.leases.size(), kEndedLeasesMax + 1);
  rig.now += kTtl;
  EXPECT_EQ(rig.Left(), 1000u - 129);
  rig.Report({{.number = 1, .spent = 0, .returned = true}}, 1);
  EXPECT_EQ(rig.Left(), 1000u - 129) << "the oldest is forgotten";
  for (const uint64_t node : {2u, 128u, 1000u}) {
    rig.Report({{.number = 1, .spent = 0, .returned = true}}, node);
  }
  EXPECT_EQ(rig.Left(), 1000u - 126);
}

TEST(LateReport, EndedLeasesTakeNoPlaceOfLivingOnes) {
  Rig rig(kWindow);
  rig.limit =
      *Limit::Make({.algorithm = Algorithm::kFixedWindow, .requests = 10'000, .period = 10s});
  for (uint64_t node = 1; node <= kEndedLeasesMax; ++node)
    ASSERT_EQ(rig.Ask({node, 1}, 1).granted, 1u);
  rig.now += kTtl;
  for (uint64_t node = 1; node <= kLeasesMax; ++node) ASSERT_EQ(rig.Ask({node, 2}, 1).granted, 1u);
  EXPECT_EQ(rig.leases.size(), kEndedLeasesMax + kLeasesMax);
  EXPECT_EQ(rig.Ask({1000, 1}, 1).granted, 0u);
}

}  // namespace late_report_test
}  // namespace headgate::algorithm
