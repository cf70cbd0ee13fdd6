#include "headgate/app/settings/console.h"

#include <gtest/gtest.h>

#include <sstream>

namespace headgate::app {
namespace console_test {

TEST(Console, ColorsForAPersonWhoHasNotRefusedIt) {
  EXPECT_TRUE(WantsColor(true, nullptr, "xterm"));
  EXPECT_TRUE(WantsColor(true, "", "xterm")) << "an empty NO_COLOR is as good as none";
  EXPECT_TRUE(WantsColor(true, nullptr, nullptr));
  EXPECT_FALSE(WantsColor(true, "1", "xterm"));
  EXPECT_FALSE(WantsColor(true, nullptr, "dumb"));
  EXPECT_FALSE(WantsColor(false, nullptr, "xterm"));
}

TEST(Console, LetsNoTextCommandTheTerminal) {
  std::ostringstream out;
  std::ostringstream err;
  Console{out, err}.Error("unknown command '\033[2Jx'\nsecond line", "did you mean '\xff'?");
  EXPECT_EQ(err.str(),
            "error: unknown command '\\x1b[2Jx'\nsecond line\nhint: did you mean '\\xff'?\n");
}

}  // namespace console_test
}  // namespace headgate::app
