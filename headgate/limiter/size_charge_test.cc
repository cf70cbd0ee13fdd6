#include "headgate/limiter/size_charge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/random.h"

namespace headgate::limiter {
namespace size_charge_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::Limit;
using base::Instant;
using store::Operation;

constexpr Instant kStart = Instant::FromNanos(1'790'000'040'000'000'000);  // a whole minute

// A bucket that is as it would be if each part had been taken only as far as it was kept.
struct Kept {
  std::map<int64_t, Cost> by_time;

  Decision At(const Limit& limit, Instant now) const {
    algorithm::NoHits hits;
    algorithm::BucketState state;
    for (const auto& [ns, cost] : by_time)
      algorithm::Charge(limit, state, hits, cost, Instant::FromNanos(ns));
    return algorithm::Decide(limit, state, hits, 0, now);
  }
};

// A bucket, and charges by sizes of one byte for each unit.
struct Bucket {
  explicit Bucket(const algorithm::LimitSpec& spec) : limit(*Limit::Make(spec)) {}

  Settled Charge(Cost cost) {
    Settled settled{.decision = algorithm::Charge(limit, state, hits, cost, now)};
    settled.decision.at = now;
    return settled;
  }
  SizeCharge Take(Cost reserve) {
    return SizeCharge(nullptr, {.limit = limit, .taken = reserve, .settled = Charge(reserve)});
  }
  void Correct(SizeCharge& charge, uint64_t bytes) {
    while (true) {
      const SizeStep step = charge.StepTo(bytes);
      if (step.cost == 0) return;
      if (step.operation == Operation::kCharge) {
        charge.OnStep(step, Charge(step.cost));
        continue;
      }
      Settled settled{.decision =
                          *algorithm::Undo(limit, state, hits, step.cost, step.taken_at, now)};
      settled.decision.at = now;
      charge.OnStep(step, settled);
    }
  }
  Decision Look() { return algorithm::Decide(limit, state, hits, 0, now); }
  uint64_t Taken() { return limit.capacity() - Look().remaining; }

  Limit limit;
  algorithm::NoHits hits;
  algorithm::BucketState state;
  Instant now = kStart;
};

constexpr algorithm::LimitSpec kOneASecond{.requests = 60, .period = std::chrono::minutes(1)};

TEST(SizeCharge, IsTheSizeInTheEnd) {
  Bucket bucket(kOneASecond);
  SizeCharge charge = bucket.Take(10);
  EXPECT_TRUE(charge.IsLessThan(11));
  EXPECT_FALSE(charge.IsLessThan(10));
  bucket.Correct(charge, 40);
  EXPECT_EQ(bucket.Taken(), 40u);
  bucket.Correct(charge, 3);
  EXPECT_EQ(bucket.Taken(), 3u);
  EXPECT_EQ(charge.StepTo(3).cost, 0u);
}

TEST(SizeCharge, OverdrawsTheBucket) {
  Bucket bucket({.requests = 10, .period = 10s});
  SizeCharge charge = bucket.Take(1);
  bucket.Correct(charge, 25);
  EXPECT_TRUE(bucket.Look().overdrawn);
  EXPECT_EQ(algorithm::Decide(bucket.limit, bucket.state, bucket.hits, 1, bucket.now).retry_after,
            16s);
}

// 20 units are taken, 5 used, and 8 have come back by themselves.
TEST(SizeCharge, WhatHasComeBackByItselfStaysTaken) {
  Bucket bucket(kOneASecond);
  SizeCharge charge = bucket.Take(20);
  bucket.now += 8s;
  EXPECT_EQ(bucket.Taken(), 12u);
  bucket.Correct(charge, 5);
  EXPECT_EQ(bucket.Look().reset_after, 0s) << "the refill of 8 s pays for the 5 that are kept";
}

TEST(SizeCharge, PartOfAUnitGoesBack) {
  Bucket bucket({.requests = 5, .period = std::chrono::minutes(1)});
  SizeCharge charge = bucket.Take(1);
  bucket.now += 7ms;
  bucket.Correct(charge, 0);
  EXPECT_EQ(bucket.Taken(), 0u);
}

// 10 units are taken, and 40 more after 5 s; 5 of the first have come back by then.
TEST(SizeCharge, PartsOfABucketAreUndoneTogether) {
  Bucket bucket(kOneASecond);
  bucket.Charge(60);  // by others, so that what goes back can be seen
  SizeCharge charge = bucket.Take(10);
  bucket.now += 5s;
  bucket.Correct(charge, 50);
  bucket.now += 2s;
  EXPECT_EQ(bucket.Look().reset_after, 103s);
  const SizeStep step = charge.StepTo(0);
  EXPECT_EQ(step.cost, 50u);
  bucket.Correct(charge, 0);
  EXPECT_NEAR(static_cast<double>(bucket.Look().reset_after.count()), 60e9, 1)
      << "43 of the 50 have gone back";
}

// The time of a part decides in which window it is lowered.
TEST(SizeCharge, PartsOfWindowsAreUndoneInTheirWindows) {
  Bucket bucket({.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 60s});
  SizeCharge charge = bucket.Take(20);
  bucket.now += 60s;
  bucket.Charge(7);  // by others
  bucket.Correct(charge, 30);
  EXPECT_EQ(bucket.Taken(), 17u);
  bucket.Correct(charge, 5);
  EXPECT_EQ(bucket.Taken(), 7u) << "10 of this window, and nothing for the 15 of the last one";
}

TEST(SizeCharge, OldPartsOfAWindowStayTaken) {
  Bucket bucket({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 60s});
  SizeCharge charge = bucket.Take(1);
  for (uint64_t i = 1; i <= 10; ++i) bucket.Correct(charge, 1 + 10 * i);
  bucket.Correct(charge, 0);
  EXPECT_EQ(bucket.Taken(), 101u - 10 * SizeCharge::kPartsMax);
  EXPECT_EQ(charge.StepTo(0).cost, 0u);
}

// The decider does not undo it, and so nothing is given back that no bucket has counted.
TEST(SizeCharge, PartThatWasNotTakenIsUndoneFirst) {
  Bucket bucket(kOneASecond);
  SizeCharge charge = bucket.Take(4);
  charge.OnStep(charge.StepTo(50), {.decision = {}, .mode = Mode::kClosed});
  const SizeStep step = charge.StepTo(15);
  EXPECT_EQ(step.operation, Operation::kUndo);
  EXPECT_EQ(step.cost, 35u);
  EXPECT_EQ(step.taken.mode, Mode::kClosed);
  charge.OnStep(step, step.taken);
  EXPECT_EQ(charge.StepTo(15).cost, 0u);
}

// The part that a lease gave goes back into it, and the other one to the store.
TEST(SizeCharge, PartOfALeaseStaysApart) {
  SizeCharge charge(nullptr, {.limit = *Limit::Make(kOneASecond),
                              .taken = 4,
                              .settled = {.decision = {}, .mode = Mode::kLeased, .lease = 7}});
  Settled exact{.decision = {}, .mode = Mode::kExact};
  exact.decision.at = kStart;
  charge.OnStep(charge.StepTo(50), exact);
  SizeStep step = charge.StepTo(0);
  EXPECT_EQ(step.cost, 46u);
  EXPECT_EQ(step.taken.mode, Mode::kExact);
  EXPECT_EQ(step.taken_at, kStart);
  charge.OnStep(step, exact);
  step = charge.StepTo(1);
  EXPECT_EQ(step.cost, 3u);
  EXPECT_EQ(step.taken.lease, 7u);
}

// However sizes are corrected, there is never more in the bucket than if every part had been taken
// only as far as it is kept.
TEST(SizeCharge, NeverGivesBackMoreThanIsMissing) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      base::Random random(seed);
      Bucket bucket({.algorithm = algorithm, .requests = 1 + random.Below(40), .period = 10s});
      Kept kept;
      struct Open {
        SizeCharge charge;
        uint64_t bytes;
        std::vector<std::pair<int64_t, Cost>> parts;
      };
      std::vector<Open> open;
      for (int step = 0; step < 100; ++step) {
        bucket.now += base::Duration(static_cast<int64_t>(random.Below(3'000'000'000)));
        if (open.size() < 4 && random.Below(2) == 0) {
          const Cost reserve = 1 + random.Below(20);
          open.push_back({bucket.Take(reserve), reserve, {{bucket.now.ns, reserve}}});
          kept.by_time[bucket.now.ns] += reserve;
          continue;
        }
        if (open.empty()) continue;
        Open& one = open[random.Below(open.size())];
        const bool is_full = one.parts.size() == SizeCharge::kPartsMax;
        const uint64_t bytes = random.Below(is_full ? one.bytes + 1 : 40);
        bucket.Correct(one.charge, bytes);
        if (bytes > one.bytes) {
          one.parts.emplace_back(bucket.now.ns, bytes - one.bytes);
          kept.by_time[bucket.now.ns] += bytes - one.bytes;
        }
        for (uint64_t surplus = one.bytes - std::min(one.bytes, bytes); surplus > 0;) {
          auto& [ns, cost] = one.parts.back();
          const Cost undone = std::min(cost, surplus);
          kept.by_time[ns] -= undone;
          cost -= undone;
          surplus -= undone;
          if (cost == 0) one.parts.pop_back();
        }
        one.bytes = bytes;
        const Decision mine = bucket.Look();
        const Decision best = kept.At(bucket.limit, bucket.now);
        ASSERT_LE(mine.remaining, best.remaining) << Name(algorithm) << ", seed " << seed;
        ASSERT_GE(mine.reset_after, best.reset_after) << Name(algorithm) << ", seed " << seed;
        if (random.Below(4) == 0) open.erase(open.begin());
      }
    }
  }
}

}  // namespace size_charge_test
}  // namespace headgate::limiter
