#include "headgate/rule/given_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/rule/limit_text.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/rule_difference.h"

namespace headgate::rule {
namespace given_limit_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;
using ::testing::HasSubstr;

LoadResult LoadRule(std::string_view limits) {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = std::string("domain: d\ndescriptors:\n- key: k\n  ").append(limits) + "\n"}};
  return LoadRules(files);
}
LoadResult LoadWords(std::string_view words) {
  return LoadRule(std::string("rate_limit: {unit: minute, requests_per_unit: 10, ").append(words) +
                  "}");
}
std::string ProblemOf(std::string_view words) { return Describe(LoadWords(words).problems); }

TEST(GivenLimitInAFile, HasAMaximumAndPlans) {
  const LoadResult loaded = LoadWords("max: 1000, plans: {gold: 500, \"7\": 20, free: 10}");
  ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
  const RuleLimit& limit = loaded.rules->rules()[0].limits[0];
  EXPECT_EQ(Describe(limit), "10 per 1m, token_bucket, max 1000, plans 7 20, free 10, gold 500");
  EXPECT_EQ(ChooseGiven(*limit.given, "gold").plan, 2u);
  EXPECT_EQ(ChooseGiven(*limit.given, "7").given, Given::kPlan) << "a plan goes first";
  EXPECT_EQ(ChooseGiven(*limit.given, "8").number, 8u);
  EXPECT_EQ(ChooseGiven(*limit.given, "1001").given, Given::kCapped);
  EXPECT_EQ(ChooseGiven(*limit.given, "700.0").number, 700u) << "a whole number in JSON";
  for (const std::string_view text : {"700.5", "700.", ".0", "700.0.0", "-7", "7e2", "07"})
    EXPECT_EQ(ChooseGiven(*limit.given, text).given, Given::kUnknown) << text;
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(GivenLimitInAFile, HasItsProblemsReported) {
  EXPECT_THAT(ProblemOf("max: 9"), HasSubstr("max is 9, less than the limit's own 10 requests"));
  EXPECT_THAT(ProblemOf("max: x"), HasSubstr("'max' is a whole number"));
  EXPECT_THAT(ProblemOf("max: -1"), HasSubstr("'max' is a whole number"));
  EXPECT_THAT(ProblemOf("plans: {}"), HasSubstr("plans names no plans"));
  EXPECT_THAT(ProblemOf("plans: [gold]"), HasSubstr("plans names no plans"));
  EXPECT_THAT(ProblemOf("plans: {gold: x}"), HasSubstr("\"gold\" has no whole number"));
  EXPECT_THAT(ProblemOf("plans: {gold: -1}"), HasSubstr("\"gold\" has no whole number"));
  EXPECT_THAT(ProblemOf("plans: {gold: 1.5}"), HasSubstr("\"gold\" has no whole number"));
  EXPECT_THAT(ProblemOf("plans: {gold: [1]}"), HasSubstr("\"gold\" has no whole number"));
  EXPECT_THAT(ProblemOf("plans: {gold: 50, gold: 60}"), HasSubstr("\"gold\" is there twice"));
  EXPECT_THAT(ProblemOf("max: 40, plans: {gold: 50}"),
              HasSubstr("\"gold\" has 50 requests, and max is 40"));
  EXPECT_THAT(Describe(LoadRule("rate_limit: {algorithm: concurrency, requests: 2, ttl: 9s, "
                                "max: 10}")
                           .problems),
              HasSubstr("max does not apply to concurrency"));
  EXPECT_THAT(Describe(LoadRule("rate_limits:\n"
                                "  - {unit: hour, requests_per_unit: 1, max: 10}\n"
                                "  - {unit: day, requests_per_unit: 1, max: 10}")
                           .problems),
              HasSubstr("two limits of this rule have max"));
  EXPECT_THAT(Describe(LoadRule("rate_limit: {unlimited: true, max: 10}").problems),
              HasSubstr("should not specify max when unlimited"));
}

TEST(GivenLimitInAFile, IsWarnedAboutIfNoPlanIsBetter) {
  const LoadResult loaded = LoadWords("plans: {trial: 5}");
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(
      Describe(loaded.warnings),
      HasSubstr("requests without a plan have a higher limit than those of plan \"trial\""));
}

TEST(GivenLimitInAFile, IsADifferenceOfRules) {
  const LoadResult one = LoadWords("plans: {gold: 500}");
  const LoadResult other = LoadWords("plans: {gold: 501}");
  EXPECT_EQ(DifferencesOf(*one.rules, *other.rules).size(), 1u);
  EXPECT_TRUE(DifferencesOf(*one.rules, *one.rules).empty());
}

}  // namespace given_limit_test
}  // namespace headgate::rule
