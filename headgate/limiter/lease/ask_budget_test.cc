#include "headgate/limiter/lease/ask_budget.h"

#include <gtest/gtest.h>

namespace headgate::limiter::lease {
namespace ask_budget_test {

constexpr int64_t kPause = 50;
constexpr int64_t kStart = 10'000;

bool IsOverspent(int64_t& even_at, int64_t now) {
  even_at = AskBudget::Spend(even_at, now, kPause);
  return even_at > now;
}

TEST(AskBudgetTest, ASmallBurstOfAsksIsAllowed) {
  int64_t even_at = 0;
  for (int i = 0; i < AskBudget::kAtOnce; ++i) EXPECT_FALSE(IsOverspent(even_at, kStart)) << i;
  EXPECT_TRUE(IsOverspent(even_at, kStart));
}

TEST(AskBudgetTest, EachPauseRefillsOneAsk) {
  int64_t even_at = 0;
  for (int i = 0; i <= AskBudget::kAtOnce; ++i) IsOverspent(even_at, kStart);
  EXPECT_TRUE(IsOverspent(even_at, kStart + kPause));
  EXPECT_FALSE(IsOverspent(even_at, kStart + 3 * kPause)) << "two pauses, one ask";
}

TEST(AskBudgetTest, OneAskInEachPauseNeverOverspends) {
  int64_t even_at = 0, now = kStart;
  for (int i = 0; i < 1000; ++i, now += kPause) EXPECT_FALSE(IsOverspent(even_at, now)) << i;
}

TEST(AskBudgetTest, AStormIsForgottenAfterFourPauses) {
  int64_t even_at = 0;
  for (int i = 0; i < 1000; ++i) IsOverspent(even_at, kStart);
  EXPECT_EQ(even_at, kStart + AskBudget::kOverspentMost * kPause);
  EXPECT_FALSE(IsOverspent(even_at, kStart + 5 * kPause)) << "five pauses, one ask";
}

}  // namespace ask_budget_test
}  // namespace headgate::limiter::lease
