#include "headgate/rule/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace problem_test {

TEST(Problem, IsAPlaceASentenceAndAHint) {
  EXPECT_EQ(Describe(Problem{
                .file = "f.yaml", .line = 3, .column = 7, .message = "wrong", .hint = "mend it"}),
            "f.yaml:3:7: wrong\n  hint: mend it");
  EXPECT_EQ(
      Describe(Problem{.file = "f.yaml", .line = 3, .column = 7, .message = "wrong", .hint = {}}),
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
  EXPECT_EQ(DidYouMean("mintue", words),
            "did you mean 'minute'?");  // swapped neighbours count as one error
  EXPECT_EQ(DidYouMean("minutes", words), "did you mean 'minute'?");
  EXPECT_EQ(DidYouMean("ratelimit", words), "did you mean 'rate_limit'?");
  EXPECT_EQ(DidYouMean("mnt", words), "");
  EXPECT_EQ(DidYouMean("dry", words), "");  // one error in three letters is too many
  EXPECT_EQ(DidYouMean("", words), "");
  EXPECT_EQ(DidYouMean("rate_limit_of_key", words),
            "did you mean 'rate_limit'?");  // the text begins with a word
  EXPECT_EQ(DidYouMean("mont", words), "did you mean 'month'?");
  EXPECT_EQ(DidYouMean("rate", words),
            "did you mean 'rate_limit'?");  // the text begins a word; the shortest such word
  EXPECT_EQ(DidYouMean("rat", words), "");
  EXPECT_EQ(DidYouMean(std::string(1000, 'm'), words), "");
}

TEST(Shown, CutsWhatWouldFillAScreen) {
  EXPECT_EQ(Shown("short"), "short");
  const std::string text(201, 'x');
  EXPECT_EQ(Shown(text), text.substr(0, 200).append("…"));
}

TEST(ProblemList, KeepsAHundredAndCountsAllButNotTwice) {
  ProblemList list("f");
  for (uint32_t line = 1; line <= 3000; ++line) {
    for (int twice = 0; twice < 2; ++twice) list.Add({.line = line, .column = 1}, "bad");
  }
  const std::vector<Problem> problems = std::move(list).Take();
  EXPECT_EQ(problems.size(), kProblemsPerFileMax + 1);
  EXPECT_EQ(CountOf(problems), 3000u);
}

TEST(ProblemList, IsFullWhenCountingWouldNeverEnd) {
  ProblemList list("f");
  for (uint32_t line = 1; line <= kProblemsCountedMax + 5; ++line)
    list.Add({.line = line, .column = 1}, "bad");
  EXPECT_TRUE(list.full());
  EXPECT_EQ(std::move(list).Take().back().message, "and at least 99900 more problems");
}

TEST(Describe, SaysAsMuchOfThePlaceAsIsKnown) {
  EXPECT_EQ(Describe({.file = "f", .line = 1, .column = 2, .message = "bad", .hint = "do good"}),
            "f:1:2: bad\n  hint: do good");
  EXPECT_EQ(Describe(WholeFileProblem("f", "gone")), "f: gone");
  EXPECT_EQ(Describe(WholeFileProblem("", "too many limits")), "too many limits");
  EXPECT_EQ(PlaceAndMessage(WholeFileProblem("a\nb", "gone", "look")), "a\\x0ab: gone");
}

}  // namespace problem_test
}  // namespace headgate::rule
