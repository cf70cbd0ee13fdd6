// The bound that the simulator checks against, compared with results worked out by hand in small
// cases.
#include "tests/simulation/bound.h"

#include <gtest/gtest.h>

namespace headgate::simulation {
namespace bound_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

// 2027-12-31 23:59:50, ten seconds before a month and a year end.
constexpr Instant kStart = Instant::FromNanos(1'830'297'590'000'000'000);

Limit Make(const LimitSpec& spec) { return *Limit::Make(spec); }

Limit Monthly(uint64_t requests) {
  return Make(
      {.algorithm = Algorithm::kFixedWindow, .requests = requests, .align = Align::kCalendarMonth});
}

Limit Of(Algorithm algorithm, uint64_t requests, Duration period = 1s) {
  return Make({.algorithm = algorithm, .requests = requests, .period = period});
}

// The tests count time from kStart.
class Checked {
 public:
  explicit Checked(const Limit& limit) : bound(limit) {}

  bool Admit(uint64_t cost, Duration at) { return bound.Admit(cost, at, kStart + at); }
  uint64_t Room(Duration at) { return bound.Room(at, kStart + at); }
  void Refund(uint64_t cost, Duration at) { bound.Refund(cost, at, kStart + at); }
  void Undo(uint64_t cost, Duration taken, Duration at) {
    bound.Undo(cost, {.at = taken, .wall = kStart + taken}, at, kStart + at);
  }
  // An admission by one of two instances, which has had no answer since `from`.
  bool AdmitInOutage(uint64_t cost, Duration from, Duration at) {
    bound.AllowOutage(from, at, 2);
    return Admit(cost, at);
  }
  // The new limit first holds together with the old one, then alone.
  void Widen(const Limit& limit, Duration at) { bound.Widen(limit, at, kStart + at); }
  void Narrow(const Limit& limit, Duration at) { bound.Narrow(limit, at, kStart + at); }
  void Change(const Limit& limit, Duration from, Duration to) {
    Widen(limit, from);
    Narrow(limit, to);
  }

  Bound bound;
};

// ---- Windows of the calendar and outages

TEST(Bound, AnOutageAddsOneCapacityToAMonth) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.Admit(10, 0s));
  EXPECT_TRUE(month.AdmitInOutage(10, 1s, 2s));
  // The length of the outage does not matter: each instance counts its own admissions in the
  // window.
  EXPECT_FALSE(month.AdmitInOutage(1, 1s, 4s));
}

TEST(Bound, AdmissionsOfAnOutageCountUntilTheirMonthEnds) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.AdmitInOutage(10, 0s, 1s));
  // Long after the outage, the store still admits its own ten.
  EXPECT_TRUE(month.Admit(10, 8s));
  EXPECT_FALSE(month.Admit(1, 9s));
}

TEST(Bound, ASecondOutageInTheSameMonthAddsNothing) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.AdmitInOutage(20, 0s, 1s));
  EXPECT_FALSE(month.AdmitInOutage(1, 7s, 8s));
}

TEST(Bound, AnInstanceThatStartsBetweenTwoOutagesGetsItsShareAgain) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.AdmitInOutage(20, 0s, 1s));
  month.bound.AllowShare(2, 6s);
  EXPECT_TRUE(month.AdmitInOutage(5, 7s, 8s));
}

TEST(Bound, AnOutageOfOneMonthAddsNothingToTheNext) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.AdmitInOutage(1, 0s, 1s));
  EXPECT_TRUE(month.Admit(10, 11s));
  EXPECT_FALSE(month.Admit(1, 12s));
}

// Clocks differ, so one instance may still be in the old month.
TEST(Bound, AnOutageAcrossTheEndOfAMonthAlsoAddsTheRestOfTheOldMonth) {
  Checked month(Monthly(10));
  EXPECT_TRUE(month.AdmitInOutage(14, 9s, 9900ms));
  EXPECT_TRUE(month.AdmitInOutage(10 + 10 + 6, 9s, 10100ms));
  EXPECT_FALSE(month.Admit(1, 10200ms));
}

// ---- The queue and the log

TEST(Bound, AQueueAdmitsOneAtOnceAndItsBurstToWait) {
  Checked queue(
      Make({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 4}));
  EXPECT_EQ(queue.Room(0s), 5u);
  EXPECT_TRUE(queue.Admit(5, 0s));
  EXPECT_TRUE(queue.Admit(1, 100ms));
  EXPECT_FALSE(queue.Admit(1, 199ms));
}

// 30 pass under the first limit. They occupy 1/5 of a second, in which the second limit would have
// admitted 2.
TEST(Bound, AQueueKeepsItsOccupiedTimeWhenItsLimitChanges) {
  const auto queue = [](uint64_t requests, uint64_t burst) {
    return Make({.algorithm = Algorithm::kLeakyBucketQueue,
                 .requests = requests,
                 .period = 1s,
                 .burst = burst});
  };
  Checked limit(queue(150, 29));
  EXPECT_TRUE(limit.Admit(30, 0s));
  limit.Widen(queue(10, 374), 0s);
  EXPECT_EQ(limit.Room(0s), 373u);
  Checked slower(queue(10, 374));
  EXPECT_TRUE(slower.Admit(375, 0s));
  slower.Change(queue(150, 29), 0s, 0s);
  EXPECT_LE(slower.Room(0s), 28u);
}

TEST(Bound, ALogAdmitsItsLimitInAnyPeriod) {
  Checked log(Of(Algorithm::kSlidingWindowLog, 10));
  EXPECT_TRUE(log.Admit(6, 100ms));
  EXPECT_TRUE(log.Admit(4, 900ms));
  EXPECT_EQ(log.Room(1099ms), 0u);
  EXPECT_EQ(log.Room(1100ms), 6u);
  EXPECT_TRUE(log.Admit(6, 1100ms));
  EXPECT_FALSE(log.Admit(1, 1200ms));
}

TEST(Bound, ARefundToALogRemovesItsNewestHit) {
  Checked log(Of(Algorithm::kSlidingWindowLog, 10));
  EXPECT_TRUE(log.Admit(6, 0ms));
  EXPECT_TRUE(log.Admit(4, 500ms));
  log.Refund(5, 600ms);
  EXPECT_EQ(log.Room(600ms), 5u);
  EXPECT_EQ(log.Room(1000ms), 10u);
}

TEST(Bound, AnUndoRemovesTheHitsOfItsTimeFromALog) {
  Checked log(Of(Algorithm::kSlidingWindowLog, 10));
  EXPECT_TRUE(log.Admit(6, 0ms));
  EXPECT_TRUE(log.Admit(4, 500ms));
  log.Undo(6, 0ms, 600ms);
  EXPECT_EQ(log.Room(600ms), 6u);
  log.Undo(6, 0ms, 1100ms);
  EXPECT_EQ(log.Room(1100ms), 6u);
}

TEST(Bound, AnUndoLowersOnlyTheWindowOfTheTake) {
  Checked window(Of(Algorithm::kFixedWindow, 10));
  EXPECT_TRUE(window.Admit(4, 900ms));
  EXPECT_TRUE(window.Admit(10, 1100ms));
  window.Undo(4, 900ms, 1200ms);
  EXPECT_EQ(window.Room(1200ms), 0u);
  window.Undo(4, 1100ms, 1200ms);
  EXPECT_EQ(window.Room(1200ms), 4u);
}

TEST(Bound, AnUndoGivesABucketWhatItStillLacks) {
  Checked bucket(Of(Algorithm::kTokenBucket, 10));
  EXPECT_TRUE(bucket.Admit(10, 0ms));
  bucket.Undo(5, 0ms, 300ms);
  EXPECT_EQ(bucket.Room(300ms), 5u);
}

TEST(Bound, AnOutageAddsOneCapacityToEachPeriodOfALog) {
  Checked log(Of(Algorithm::kSlidingWindowLog, 10));
  EXPECT_TRUE(log.Admit(10, 0s));
  EXPECT_TRUE(log.AdmitInOutage(10, 0s, 500ms));
  EXPECT_FALSE(log.AdmitInOutage(1, 0s, 900ms));
}

TEST(Bound, ALogThatReplacesABucketGivesItsRequestsBackOnePeriodLater) {
  Checked limit(Of(Algorithm::kTokenBucket, 10));
  EXPECT_TRUE(limit.Admit(10, 0s));
  const Limit log = Of(Algorithm::kSlidingWindowLog, 40);
  limit.Widen(log, 0s);
  // The larger capacity once, then the refill of the bucket.
  EXPECT_EQ(limit.Room(0s), 30u);
  EXPECT_TRUE(limit.Admit(30, 0s));
  EXPECT_FALSE(limit.Admit(11, 900ms));
}

// Nobody sends requests in the meantime.
TEST(Bound, RequestsThatALogGaveBackRemainAfterItsLimitIsReplaced) {
  Checked limit(Of(Algorithm::kSlidingWindowLog, 10));
  EXPECT_TRUE(limit.Admit(10, 0s));
  const Limit bucket = Of(Algorithm::kTokenBucket, 40, 24h);
  limit.Change(bucket, 0s, 2s);
  EXPECT_EQ(limit.Room(2s), 40u);
}

// ---- A limit of 0 requests

TEST(Bound, ALimitOf0RequestsAdmitsNothing) {
  Checked none(
      Make({.algorithm = Algorithm::kTokenBucket, .requests = 0, .period = 1s, .burst = 5}));
  EXPECT_EQ(none.Room(0s), 0u);
  EXPECT_FALSE(none.Admit(1, 10s));
}

TEST(Bound, AfterAChangeTo0RequestsNothingPasses) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    Checked limit(Of(algorithm, 10));
    EXPECT_TRUE(limit.Admit(3, 0s));
    const Limit none = Of(algorithm, 0);
    limit.Widen(none, 1s);
    EXPECT_TRUE(limit.Admit(3, 1s)) << "while some instances have the old limit";
    limit.Narrow(none, 2s);
    EXPECT_FALSE(limit.Admit(1, 5s));
  }
}

TEST(Bound, AfterAChangeFrom0RequestsTheWholeCapacityIsThere) {
  Checked limit(Of(Algorithm::kTokenBucket, 0));
  limit.Widen(Of(Algorithm::kTokenBucket, 10), 1s);
  EXPECT_EQ(limit.Room(1s), 10u);
}

// ---- Lost state

// 820 of 820 a day, then 157 a day: a store that restarts empty admits one more capacity of the new
// limit.
TEST(Bound, LostStateAddsOneCapacityOfTheNewLimit) {
  Checked day(Of(Algorithm::kSlidingWindowCounter, 820, 24h));
  EXPECT_TRUE(day.Admit(820, 0s));
  const Limit less = Of(Algorithm::kSlidingWindowCounter, 157, 24h);
  day.Change(less, 1s, 2s);
  EXPECT_EQ(day.Room(3s), 0u);
  day.bound.AllowCapacity(4s, 1h);
  EXPECT_TRUE(day.Admit(157, 5s));
  EXPECT_FALSE(day.Admit(1, 6s));
}

// Each of the two servers has a fresh bucket, so under the new limit it is full.
TEST(Bound, ASecondServerHasTheLargerCapacityToo) {
  Checked limit(Of(Algorithm::kTokenBucket, 10));
  limit.bound.AllowSecondServer(0s, 4s, 8s);
  limit.bound.AllowCapacity(0s, 8s);
  limit.Widen(Of(Algorithm::kTokenBucket, 500, 24h), 1s);
  EXPECT_TRUE(limit.Admit(1000, 1s));
}

}  // namespace bound_test
}  // namespace headgate::simulation
