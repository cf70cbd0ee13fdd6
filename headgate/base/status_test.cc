#include "headgate/base/status.h"

#include <memory>

#include "headgate/base/check.h"

namespace headgate::base {
namespace status_test {

absl::StatusOr<std::unique_ptr<int>> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(number / 2);
}

absl::Status CheckEven(int number, int* reached) {
  HEADGATE_RETURN_IF_ERROR(Half(number).status());
  ++*reached;
  return absl::OkStatus();
}

absl::StatusOr<int> Quarter(int number) {
  HEADGATE_ASSIGN_OR_RETURN(const std::unique_ptr<int> half, Half(number));
  HEADGATE_ASSIGN_OR_RETURN(const auto quarter, Half(*half));
  return *quarter;
}

TEST(Status, AnErrorReturnsEarlyAndSuccessGoesOn) {
  int reached = 0;
  EXPECT_TRUE(CheckEven(4, &reached).ok());
  EXPECT_EQ(CheckEven(3, &reached), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(reached, 1);
}

TEST(Status, AssignmentMovesTheValueOrPassesTheErrorUp) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Quarter(5).status(), absl::InvalidArgumentError("odd"));
}

TEST(CheckDeathTest, AFailedCheckSaysWhatAndWhere) {
  const int apples = 3;
  HEADGATE_CHECK(apples == 3);
  EXPECT_DEATH(HEADGATE_CHECK(apples == 4), "CHECK failed: apples == 4 at .*status_test.cc");
}

}  // namespace status_test
}  // namespace headgate::base
