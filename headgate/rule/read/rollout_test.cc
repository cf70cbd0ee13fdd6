// Roll-outs in rule files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headgate/rule/explain.h"
#include "headgate/rule/limit_text.h"
#include "headgate/rule/read/limit_choices.h"
#include "headgate/rule/read/load.h"

namespace headgate::rule::read {
namespace rollout_test {

using ::testing::HasSubstr;

LoadResult Load(const std::string& rule) {
  const RuleFile file{.name = "f.yaml", .text = "domain: d\ndescriptors:\n- key: k\n" + rule};
  return LoadRules({&file, 1});
}

constexpr std::string_view kLimit = "  rate_limit: {unit: minute, requests_per_unit: 10}\n";

TEST(RolloutText, NamesNewLimitsForAPartOfTheKeys) {
  const LoadResult result =
      Load(std::string(kLimit) +
           "  rollout: {percent: 0.5, rate_limit: {unit: minute, requests_per_unit: 20}}\n");
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  const Rule& rule = result.rules->rules()[0];
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 10u);
  ASSERT_NE(rule.rollout, nullptr);
  EXPECT_EQ(rule.rollout->keys_ppm, 5'000u);
  EXPECT_FALSE(rule.rollout->shadow());
  EXPECT_EQ(rule.rollout->limits[0].limit.spec().requests, 20u);
}

TEST(RolloutText, TriesLimitsInShadow) {
  const LoadResult result = Load(std::string(kLimit) +
                                 "  rollout:\n    shadow: true\n    rate_limits:\n"
                                 "    - {unit: second, requests_per_unit: 1}\n"
                                 "    - {unit: hour, requests_per_unit: 100}\n");
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  EXPECT_TRUE(result.rules->rules()[0].rollout->shadow());
  EXPECT_EQ(result.rules->rules()[0].rollout->limits.size(), 2u);
  EXPECT_TRUE(Load("  rate_limit: {unlimited: true}\n"
                   "  rollout: {shadow: true, rate_limit: {unit: day, requests_per_unit: 1}}\n")
                  .ok());
}

TEST(RolloutText, IsExplained) {
  const LoadResult result =
      Load(std::string(kLimit) +
           "  rollout: {percent: 0.5, rate_limit: {unit: minute, requests_per_unit: 20}}\n");
  ASSERT_TRUE(result.ok());
  const Entry entry{"k", "v"};
  EXPECT_THAT(
      Describe(Explain(*result.rules, "d", {&entry, 1})),
      HasSubstr("roll-out  20 per 1m, fixed_window, count_denied, for 0.5 % of the keys\n"));
  EXPECT_EQ(DescribeReach({.limits = {}, .keys_ppm = 1'000'000}), "for 100 % of the keys");
  EXPECT_EQ(DescribeReach({.limits = {}, .keys_ppm = 1}), "for 0.0001 % of the keys");
  EXPECT_EQ(DescribeReach({.limits = {}, .keys_ppm = 100'000}), "for 10 % of the keys");
  EXPECT_EQ(DescribeReach({.limits = {}, .keys_ppm = 0}), "in shadow");
}

TEST(RolloutText, SaysWhatIsWrong) {
  struct Case {
    std::string rollout;
    std::string message;
  };
  const std::string limit = "rate_limit: {unit: day, requests_per_unit: 1}";
  for (const Case& one : {
           Case{"{" + limit + "}", "neither shadow nor percent"},
           Case{"{percent: 5, shadow: true, " + limit + "}", "both shadow and percent"},
           Case{"{percent: 0, " + limit + "}", "invalid percent '0'"},
           Case{"{percent: 101, " + limit + "}", "invalid percent '101'"},
           Case{"{percent: 5}", "a roll-out without a limit"},
           Case{"5", "a roll-out"},
           Case{"{percent: 5, surprise: 1, " + limit + "}", "unknown key 'surprise'"},
           Case{"{percent: 5, rate_limit: {unit: day, requests_per_unit: 1, name: n}}",
                "changes only the numbers"},
           Case{"{percent: 5, rate_limit: {unlimited: true}}", "changes only the numbers"},
           Case{"{percent: 5, rate_limit: {unit: fortnight, requests_per_unit: 1}}", "fortnight"},
       }) {
    const LoadResult result = Load(std::string(kLimit) + "  rollout: " + one.rollout + "\n");
    EXPECT_FALSE(result.ok()) << one.rollout;
    EXPECT_THAT(Describe(result.problems), HasSubstr(one.message)) << one.rollout;
  }
  EXPECT_THAT(Describe(Load("  rollout: {percent: 5, " + limit + "}\n").problems),
              HasSubstr("a roll-out of a rule that has no limit"));
  EXPECT_THAT(
      Describe(Load("  rate_limit: {unlimited: true}\n  rollout: {percent: 5, " + limit + "}\n")
                   .problems),
      HasSubstr("of an unlimited rule"));
}

TEST(PercentByText, IsADecimalNumberUpToAHundred) {
  EXPECT_EQ(PercentByText("100"), 1'000'000u);
  EXPECT_EQ(PercentByText("5"), 50'000u);
  EXPECT_EQ(PercentByText("0.0001"), 1u);
  EXPECT_EQ(PercentByText("99.9999"), 999'999u);
  for (const char* bad : {"", "0", "0.0", "100.0001", "101", "1000", "-1", "1.", ".5", "1.00001",
                          "05", "5%", "1e1", "٥"})
    EXPECT_FALSE(PercentByText(bad).has_value()) << bad;
}

TEST(ShareByTextOfWhole, IsAtMostOne) {
  EXPECT_EQ(ShareByText("1"), 1'000'000u);
  EXPECT_EQ(ShareByText("0.25"), 250'000u);
  EXPECT_EQ(ShareByText("0.000001"), 1u);
  for (const char* bad : {"", "0", "1.1", "2", "10", ".5", "0.0000001", "a"})
    EXPECT_FALSE(ShareByText(bad).has_value()) << bad;
}

}  // namespace rollout_test
}  // namespace headgate::rule::read
