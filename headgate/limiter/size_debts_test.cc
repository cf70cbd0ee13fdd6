#include "headgate/limiter/size_debts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/random.h"

namespace headgate::limiter {
namespace size_debts_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::Limit;
using base::Instant;
using Added = SizeDebts::Added;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);
constexpr base::Hash128 kAnn{.low = 1, .high = 2};
constexpr base::Hash128 kBob{.low = 3, .high = 4};

TEST(SizeDebts, AddUpAndArePaidInParts) {
  SizeDebts debts;
  EXPECT_EQ(debts.Add(kAnn, 5), Added::kToPay);
  EXPECT_EQ(debts.Add(kAnn, 7), Added::kPaid) << "somebody pays already";
  EXPECT_EQ(debts.OwedBy(kAnn), 12u);
  EXPECT_EQ(debts.OwedBy(kBob), 0u);
  EXPECT_EQ(debts.Pay(kAnn, 10), 0u);
  EXPECT_FALSE(debts.EraseIfPaid(kAnn));
  EXPECT_EQ(debts.Pay(kAnn, 5), 3u) << "more than was owed";
  EXPECT_EQ(debts.keys(), 1u);
  EXPECT_TRUE(debts.EraseIfPaid(kAnn));
  EXPECT_EQ(debts.keys(), 0u);
  EXPECT_EQ(debts.Add(kAnn, 1), Added::kToPay);
}

// Usually a debt is paid at once; only a bucket that lacks it denies the key.
TEST(SizeDebts, DenyTheirKeyWhenTheBucketLacksThem) {
  SizeDebts debts;
  debts.Add(kAnn, 5);
  EXPECT_FALSE(debts.any());
  EXPECT_FALSE(debts.Find(kAnn));
  debts.Deny(kAnn, kStart + 3s);
  debts.Deny(kBob, kStart);
  EXPECT_TRUE(debts.any());
  ASSERT_TRUE(debts.Find(kAnn));
  EXPECT_EQ(debts.Find(kAnn)->owed, 5u);
  EXPECT_EQ(debts.Find(kAnn)->due, kStart + 3s);
  EXPECT_FALSE(debts.Find(kBob));
  debts.Pay(kAnn, 5);
  EXPECT_FALSE(debts.Find(kAnn)) << "nothing is owed any more";
  debts.EraseIfPaid(kAnn);
  EXPECT_FALSE(debts.any());
}

TEST(SizeDebts, CanBeCancelledAndForgotten) {
  SizeDebts debts;
  EXPECT_EQ(debts.Cancel(kAnn, 4), 0u);
  debts.Add(kAnn, 5);
  debts.Deny(kAnn, kStart);
  EXPECT_EQ(debts.Cancel(kAnn, 2), 2u);
  EXPECT_EQ(debts.Cancel(kAnn, 9), 3u);
  debts.Add(kAnn, 6);
  EXPECT_EQ(debts.Forget(kAnn), 6u);
  EXPECT_EQ(debts.Forget(kAnn), 0u);
  EXPECT_FALSE(debts.any());
  EXPECT_EQ(debts.keys(), 0u);
}

TEST(SizeDebts, HaveABound) {
  SizeDebts debts;
  base::Random random(1);
  size_t added = 0;
  for (size_t i = 0; i < 2 * SizeDebts::kKeysMax; ++i) {
    const base::Hash128 key{.low = i, .high = random.Next()};
    if (debts.Add(key, 1) == Added::kToPay) ++added;
  }
  EXPECT_EQ(added, debts.keys());
  EXPECT_LE(debts.keys(), SizeDebts::kKeysMax);
  EXPECT_GE(debts.keys(), SizeDebts::kKeysMax / 2);
}

TEST(SizeDebts, OfSeveralThreadsAddUp) {
  SizeDebts debts;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) debts.Add(kAnn, 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(debts.OwedBy(kAnn), 12'000u);
}

// ---- How long a debt denies

base::Duration RetryAfter(const algorithm::LimitSpec& spec, uint64_t owed, base::Duration due,
                          uint64_t cost) {
  return DeniedByDebt(*Limit::Make(spec), {.owed = owed, .due = kStart + due}, cost, kStart)
      .retry_after;
}

// A bucket of 10 in which one comes back each second. It pays at most 10 at `due`.
TEST(DeniedByDebt, BucketNeedsTheRestOfTheDebtAndTheCost) {
  const algorithm::LimitSpec spec{.requests = 10, .period = 10s};
  EXPECT_EQ(RetryAfter(spec, 4, 4s, 1), 5s);
  EXPECT_EQ(RetryAfter(spec, 15, 10s, 1), 16s);
  EXPECT_EQ(RetryAfter(spec, 15, 3s, 10), 18s);
  EXPECT_EQ(RetryAfter(spec, 4, -1s, 1), 1s) << "it is being paid";
}

// Windows of 10. The debt of 15 takes the next one and half of the one after that.
TEST(DeniedByDebt, WindowsPayOneAfterTheOther) {
  const algorithm::LimitSpec spec{
      .algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 10s};
  EXPECT_EQ(RetryAfter(spec, 4, 7s, 6), 7s);
  EXPECT_EQ(RetryAfter(spec, 4, 7s, 7), 17s);
  EXPECT_EQ(RetryAfter(spec, 15, 7s, 5), 17s);
  EXPECT_EQ(RetryAfter(spec, 15, 7s, 6), 27s);
}

// The counter itself pays, as a payment does: the whole limit, or the rest, as soon as it fits. No
// request of the cost fits before the time that was said.
TEST(DeniedByDebt, SlidingCounterIsNeverReadyEarlier) {
  base::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    const uint64_t capacity = 1 + random.Below(20);
    const Limit limit = *Limit::Make({.algorithm = Algorithm::kSlidingWindowCounter,
                                      .requests = static_cast<uint32_t>(capacity),
                                      .period = 3s});
    Instant now = kStart + base::Duration(static_cast<int64_t>(random.Below(7'000'000'000)));
    algorithm::BucketState bucket{};
    algorithm::NoHits none;
    const auto take = [&](uint64_t units) {
      return algorithm::Decide(limit, bucket, none, units, now);
    };
    take(random.Below(capacity + 1));
    now += base::Duration(static_cast<int64_t>(random.Below(6'000'000'000)));
    take(random.Below(capacity + 1));
    uint64_t owed = 1 + random.Below(5 * capacity);
    const uint64_t cost = 1 + random.Below(capacity);
    const algorithm::Decision first = take(std::min(owed, capacity));
    if (first.allowed) continue;  // the bucket does not lack it
    const Instant asked_at = now;
    const SizeDebts::Debt debt{.owed = owed, .due = now + first.retry_after};
    const Instant told = now + DeniedByDebt(limit, debt, cost, now).retry_after;
    while (owed > 0) {
      const algorithm::Decision decision = take(std::min(owed, capacity));
      if (decision.allowed)
        owed -= std::min(owed, capacity);
      else
        now += decision.retry_after;
    }
    now = std::max(now, told);
    EXPECT_EQ(now, told) << "the debt is paid by then";
    EXPECT_TRUE(take(cost).allowed);
    EXPECT_LE(told - asked_at, 3s * (2 * (debt.owed / capacity) + 6)) << "and not much later";
  }
}

TEST(DeniedByDebt, SlidingCounterHasRoomInEverySecondWindow) {
  const algorithm::LimitSpec spec{
      .algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 10s};
  // kStart is the beginning of a window. The limit is taken at 20 s, and again at 40 s; a tenth of
  // it has room 1 s after the beginning of the next window.
  EXPECT_EQ(RetryAfter(spec, 10, 20s, 1), 31s);
  EXPECT_EQ(RetryAfter(spec, 20, 20s, 1), 51s);
  EXPECT_EQ(RetryAfter(spec, 15, 20s, 5), 40s) << "5 at 35 s, and 5 more at the end of the window";
  EXPECT_EQ(RetryAfter(spec, 15, 20s, 6), 46s);
}

TEST(DeniedByDebt, WhatNeverFitsNeverFits) {
  EXPECT_EQ(RetryAfter({.requests = 10, .period = 10s}, 4, 4s, 11), algorithm::kNever);
  EXPECT_EQ(RetryAfter({.requests = 0, .period = 10s}, 4, 4s, 1), algorithm::kNever);
}

TEST(DeniedByDebt, DoesNotOverflow) {
  const base::Duration most =
      RetryAfter({.requests = 1, .period = 24h * 365 * 100}, UINT64_MAX, 0s, 1);
  EXPECT_GT(most, 24h * 365 * 10);
  EXPECT_LT(most, algorithm::kNever);
}

}  // namespace size_debts_test
}  // namespace headgate::limiter
