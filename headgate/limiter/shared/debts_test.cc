#include "headgate/limiter/shared/debts.h"

#include <gtest/gtest.h>

namespace headgate::limiter::shared {
namespace debts_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

class DebtsTest : public ::testing::Test {
 protected:
  store::LimitHandle Intern(const LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }
  void Add(uint64_t key, algorithm::Cost cost, const LimitSpec& spec) {
    const store::LimitHandle limit = Intern(spec);
    debts.Add({key, key}, "hg:{k}", limit, {}, limit->limit, cost, now);
  }
  // Takes all debts to be settled.
  algorithm::Cost Owed() {
    auto debt = debts.Take(now);
    if (!debt) return 0;
    const algorithm::Cost owed = Debts::AmountOf(*debt, now);
    debts.PutBack(*std::move(debt), now);
    return owed;
  }

  store::LimitTable limits;
  Debts debts{4};
  Instant now = Instant::FromNanos(1'790'000'000'000'000'000);
};

constexpr LimitSpec kTwentyASecond{.requests = 20, .period = 1s, .burst = 100};

TEST_F(DebtsTest, TimePaysADebtAsTheBucketRefills) {
  Add(1, 100, kTwentyASecond);
  EXPECT_EQ(Owed(), 100u);
  now += 2s;
  EXPECT_EQ(Owed(), 60u);
  Add(1, 10, kTwentyASecond);
  EXPECT_EQ(Owed(), 70u);
  now += 15s;
  EXPECT_EQ(debts.size(), 1u);
  EXPECT_FALSE(debts.Take(now).has_value());
  EXPECT_TRUE(debts.empty());
}

TEST_F(DebtsTest, ADebtOfAWindowEndsWithTheWindow) {
  now = Instant::FromNanos(1'790'000'000'000'000'000 / (60 * 1'000'000'000ll) *
                           (60 * 1'000'000'000ll));
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowLog}) {
    Add(1, 7, {.algorithm = algorithm, .requests = 10, .period = 60s});
    now += 59s;
    EXPECT_EQ(Owed(), 7u);
    now += 1s;
    EXPECT_EQ(Owed(), 0u);
  }
}

TEST_F(DebtsTest, AQueueOwesNothing) {
  Add(1, 1, {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 60s});
  EXPECT_TRUE(debts.empty());
}

TEST_F(DebtsTest, UndoneRequestsAreNotOwed) {
  Add(1, 10, kTwentyASecond);
  debts.Undo({1, 1}, 4, now, now);
  EXPECT_EQ(Owed(), 6u);
}

// A response turned out larger than the share.
TEST_F(DebtsTest, AllOfAChargeIsOwed) {
  Add(1, 100'000, kTwentyASecond);
  EXPECT_EQ(Owed(), 100'000u);
  now += 1h;
  EXPECT_EQ(Owed(), 28'000u);
  for (const Algorithm algorithm :
       {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    const auto key = static_cast<uint64_t>(algorithm) + 10;
    debts.Take(now);
    Add(key, 100'000, {.algorithm = algorithm, .requests = 10, .period = 60s});
    EXPECT_EQ(Owed(), 100'000u);
  }
}

TEST_F(DebtsTest, TheSlowestAndTheFastestRateHaveRoom) {
  Add(1, 5, {.requests = 1, .period = 24h * 365 * 100});
  EXPECT_GE(Owed(), 1u);
  debts.Take(now);
  Add(2, uint64_t{1} << 36, {.requests = uint64_t{1} << 36, .period = 1ms});
  EXPECT_EQ(Owed(), uint64_t{1} << 36);
}

TEST_F(DebtsTest, TheOldestIsSettledFirstAndOnce) {
  Add(1, 10, kTwentyASecond);
  Add(2, 20, kTwentyASecond);
  const auto first = debts.Take(now);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->key, (base::Hash128{1, 1}));
  EXPECT_EQ(first->name, "hg:{k}");
  EXPECT_EQ(debts.Take(now)->key, (base::Hash128{2, 2}));
  EXPECT_FALSE(debts.Take(now).has_value());
}

TEST_F(DebtsTest, AnUnsettledDebtIsAddedToTheNewerOne) {
  Add(1, 10, kTwentyASecond);
  auto debt = debts.Take(now);
  Add(1, 5, kTwentyASecond);
  debts.PutBack(*std::move(debt), now);
  EXPECT_EQ(Owed(), 15u);
}

TEST_F(DebtsTest, AChangeOfLimitKeepsTheDebt) {
  Add(1, 60, kTwentyASecond);
  Add(1, 1, {.requests = 10, .period = 1s, .burst = 50});
  EXPECT_EQ(Owed(), 61u) << "also beyond its capacity";
}

TEST_F(DebtsTest, AFullTableReusesPaidPlacesAndCountsRequestsWithoutAPlace) {
  for (uint64_t key = 1; key <= 5; ++key) Add(key, 10, kTwentyASecond);
  EXPECT_EQ(debts.size(), 4u);
  EXPECT_EQ(debts.counters().forgotten.value(), 10u);
  EXPECT_EQ(debts.counters().owed.value(), 40u);
  now += 1s;
  Add(6, 10, kTwentyASecond);
  EXPECT_EQ(debts.size(), 1u);
  EXPECT_EQ(debts.counters().keys.value(), 1u);
  EXPECT_EQ(debts.counters().forgotten.value(), 10u);
}

}  // namespace debts_test
}  // namespace headgate::limiter::shared
