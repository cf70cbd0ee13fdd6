#include "headgate/rule/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace {

TEST(Problem, IsAPlaceASentenceAndAHint) {
  EXPECT_EQ(Describe(Problem{.file = "f.yaml", .line = 3, .column = 7, .message = "wrong", .hint = "mend it"}),
            "f.yaml:3:7: wrong\n  hint: mend it");
  EXPECT_EQ(Describe(Problem{.file = "f.yaml", .line = 3, .column = 7, .message = "wrong", .hint = {}}),
            "f.yaml:3:7: wrong");
}

TEST(ProblemList, GivesThemInTheOrderOfTheFileEachOnce) {
  ProblemList list("f");
  list.Add({.line = 2, .column = 5}, "c");
  list.Add({.line = 1, .column = 9}, "b");
  list.Add({.line = 2, .column = 5}, "c");
  list.Add({.line = 1, .column = 2}, "a");
  EXPECT_EQ(Describe(std::move(list).Take()), "f:1:2: a\nf:1:9: b\nf:2:5: c\n");
}

TEST(DidYouMean, KnowsASlipOfTheFinger) {
  const std::vector<std::string_view> words{"minute", "month", "day", "rate_limit", "rate_limits"};
  EXPECT_EQ(DidYouMean("minite", words), "did you mean 'minute'?");
  EXPECT_EQ(DidYouMean("mintue", words), "did you mean 'minute'?");  // swapped neighbours are one slip
  EXPECT_EQ(DidYouMean("minutes", words), "did you mean 'minute'?");
  EXPECT_EQ(DidYouMean("ratelimit", words), "did you mean 'rate_limit'?");
  EXPECT_EQ(DidYouMean("mnt", words), "");
  EXPECT_EQ(DidYouMean("dry", words), "");  // one letter of three is no slip
  EXPECT_EQ(DidYouMean("", words), "");
  EXPECT_EQ(DidYouMean(std::string(1000, 'm'), words), "");
}

TEST(Shown, CutsWhatWouldFillAScreen) {
  EXPECT_EQ(Shown("short"), "short");
  const std::string text(201, 'x');
  EXPECT_EQ(Shown(text), text.substr(0, 200).append("…"));
}

}  // namespace
}  // namespace headgate::rule
