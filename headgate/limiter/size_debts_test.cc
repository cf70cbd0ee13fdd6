#include "headgate/limiter/size_debts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "headgate/base/random.h"

namespace headgate::limiter {
namespace {

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

}  // namespace
}  // namespace headgate::limiter
