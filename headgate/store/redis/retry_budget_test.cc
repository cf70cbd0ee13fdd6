#include "headgate/store/redis/retry_budget.h"

#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace retry_budget_test {

TEST(RetryBudget, AllowsATenthOfTheCallsAndAFewToBeginWith) {
  RetryBudget budget(10);
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    budget.OnCall();
    if (budget.Take()) ++taken;
  }
  EXPECT_GE(taken, 1000);
  EXPECT_LE(taken, 1010);
}

TEST(RetryBudget, SavesUpNoMoreThanTen) {
  RetryBudget budget(10);
  for (int i = 0; i < 10'000; ++i) budget.OnCall();
  int taken = 0;
  while (budget.Take()) ++taken;
  EXPECT_EQ(taken, 10);
}

TEST(RetryBudget, ABudgetOfZeroAllowsNoRetry) {
  RetryBudget budget(0);
  EXPECT_FALSE(budget.Take());
}

}  // namespace retry_budget_test
}  // namespace headgate::store::redis
