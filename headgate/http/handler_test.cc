#include "headgate/http/handler.h"

#include <gtest/gtest.h>

namespace headgate::http {
namespace handler_test {

TEST(Suspension, KeepsTheStateOfAHandlerBetweenCalls) {
  Suspension suspension;
  suspension.Ensure<std::string>("waits");
  EXPECT_EQ(suspension.Ensure<std::string>("another"), "waits");
}

TEST(Suspension, NeverHandsOutTheStateOfAnotherHandler) {
  Suspension suspension;
  const auto counted = std::make_shared<int>(7);
  suspension.Ensure<std::shared_ptr<int>>(counted);
  EXPECT_EQ(suspension.Ensure<std::string>("mine"), "mine");
  EXPECT_EQ(counted.use_count(), 1) << "the first state is destroyed";
}

}  // namespace handler_test
}  // namespace headgate::http
