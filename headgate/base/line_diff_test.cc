#include "headgate/base/line_diff.h"

#include <gtest/gtest.h>

namespace headgate::base {
namespace line_diff_test {

TEST(LineDiff, ShowsTheLinesThatChangedAndThreeAround) {
  EXPECT_EQ(LineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(LineDiff, ShowsNothingIfNothingHasChanged) {
  EXPECT_EQ(LineDiff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(LineDiff("", ""), "");
  EXPECT_EQ(LineDiff("a", "a\n"), "");
}

TEST(LineDiff, ShowsWhatIsNewAndWhatIsGone) {
  EXPECT_EQ(LineDiff("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(LineDiff("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
  EXPECT_EQ(LineDiff("a\nb\n", "a\nx\nb\n"), "@@ -1,2 +1,3 @@\n a\n+x\n b\n");
}

TEST(LineDiff, KeepsPartsApartThatAreFarFromEachOther) {
  std::string before;
  std::string after;
  for (int i = 1; i <= 20; ++i) {
    before += std::to_string(i) + "\n";
    if (i != 2) after += std::to_string(i) + "\n";
    if (i == 19) after += "new\n";
  }
  EXPECT_EQ(LineDiff(before, after),
            "@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n"
            "@@ -17,4 +16,5 @@\n 17\n 18\n 19\n+new\n 20\n");
}

// Lines 2 and 9 have six unchanged ones between them, which both parts would show.
TEST(LineDiff, JoinsPartsWhoseContextTouches) {
  EXPECT_EQ(LineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n3\n4\n5\n6\n7\n8\n"),
            "@@ -1,9 +1,7 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n");
}

}  // namespace line_diff_test
}  // namespace headgate::base
