#include "headgate/store/usability.h"

#include <gtest/gtest.h>

namespace headgate::store {
namespace usability_test {

TEST(Usability, AProblemLastsUntilAnyLoopHasUsedTheStore) {
  Usability usability;
  EXPECT_TRUE(usability.problem().ok());
  EXPECT_FALSE(usability.has_answered());
  usability.Set(1, absl::PermissionDeniedError("it refuses the login"));
  EXPECT_TRUE(usability.has_answered());
  EXPECT_EQ(usability.problem(), absl::UnavailableError("the store: it refuses the login"));
  usability.Set(0, absl::OkStatus());
  EXPECT_TRUE(usability.problem().ok());
  usability.Set(1, absl::PermissionDeniedError("it refuses the login"));
  EXPECT_TRUE(usability.problem().ok()) << "later failures are outages";
}

}  // namespace usability_test
}  // namespace headgate::store
