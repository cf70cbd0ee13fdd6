#include "headgate/app/console.h"

#include <gtest/gtest.h>

namespace headgate::app {
namespace {

TEST(Console, ColorsForAPersonWhoHasNotRefusedIt) {
  EXPECT_TRUE(WantsColor(true, nullptr, "xterm"));
  EXPECT_TRUE(WantsColor(true, "", "xterm")) << "an empty NO_COLOR is as good as none";
  EXPECT_TRUE(WantsColor(true, nullptr, nullptr));
  EXPECT_FALSE(WantsColor(true, "1", "xterm"));
  EXPECT_FALSE(WantsColor(true, nullptr, "dumb"));
  EXPECT_FALSE(WantsColor(false, nullptr, "xterm"));
}

}  // namespace
}  // namespace headgate::app
