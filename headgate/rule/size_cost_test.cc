#include "headgate/rule/size_cost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/rule/limit_text.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/rule_difference.h"

namespace headgate::rule {
namespace size_cost_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

constexpr uint64_t kKiB = 1024;

TEST(Sizes, AreBytesOrPowersOf1024) {
  EXPECT_EQ(*ParseSize("1"), 1u);
  EXPECT_EQ(*ParseSize("1500"), 1500u);
  EXPECT_EQ(*ParseSize("7B"), 7u);
  EXPECT_EQ(*ParseSize("64KiB"), 64 * kKiB);
  EXPECT_EQ(*ParseSize("3MiB"), 3 * kKiB * kKiB);
  EXPECT_EQ(*ParseSize("2GiB"), 2 * kKiB * kKiB * kKiB);
  EXPECT_EQ(*ParseSize("1024TiB"), kSizeMax);
}

TEST(Sizes, ThatAreNoneAreRefused) {
  for (const std::string_view text :
       {"", "0", "0KiB", "-1", "1.5KiB", "KiB", "1kib", "1KB", "1 KiB", "1KiB ", "+1",
        "1125899906842625", "1025TiB", "99999999999999999999999999"})
    EXPECT_FALSE(ParseSize(text).ok()) << text;
}

TEST(Sizes, AreWrittenInTheLargestUnitThatFits) {
  for (const std::string_view text : {"1B", "1500B", "64KiB", "1025KiB", "3MiB", "5GiB", "1024TiB"})
    EXPECT_EQ(FormatSize(*ParseSize(text)), text);
}

TEST(SizeCosts, RoundUpToUnits) {
  const SizeCost cost{.per_bytes = kKiB, .reserve_bytes = kKiB + 1};
  EXPECT_EQ(cost.UnitsOf(0), 0u);
  EXPECT_EQ(cost.UnitsOf(1), 1u);
  EXPECT_EQ(cost.UnitsOf(kKiB), 1u);
  EXPECT_EQ(cost.UnitsOf(kKiB + 1), 2u);
  EXPECT_EQ(cost.UnitsOf(UINT64_MAX), UINT64_MAX / kKiB + 1);
  EXPECT_EQ(cost.reserve(), 2u);
}

LoadResult LoadLimit(std::string_view words, std::string_view more = "") {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = std::string("domain: d\ndescriptors:\n- key: k\n  rate_limit: {").append(words) +
               "}\n" + std::string(more)}};
  return LoadRules(files);
}

constexpr std::string_view kNumbers = "unit: minute, requests_per_unit: 100, cost: ";

std::string ProblemOf(std::string_view cost, std::string_view more = "") {
  return Describe(LoadLimit(std::string(kNumbers).append(cost).append(more)).problems);
}

TEST(SizeCostInAFile, IsReadWithItsLimit) {
  const LoadResult loaded =
      LoadLimit(std::string(kNumbers) + "{of: response_bytes, per: 1KiB, reserve: 64KiB}");
  ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
  const RuleLimit& limit = loaded.rules->rules()[0].limits[0];
  EXPECT_EQ(limit.cost, (SizeCost{.of = SizeCost::Of::kResponseBytes,
                                  .per_bytes = kKiB,
                                  .reserve_bytes = 64 * kKiB}));
  EXPECT_EQ(limit.limit.algorithm(), algorithm::Algorithm::kTokenBucket);
}

TEST(SizeCostInAFile, ReservesOneUnitByDefault) {
  const LoadResult loaded = LoadLimit(std::string(kNumbers) + "{of: request_bytes, per: 2KiB}");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.rules->rules()[0].limits[0].cost, (SizeCost{.of = SizeCost::Of::kRequestBytes,
                                                               .per_bytes = 2 * kKiB,
                                                               .reserve_bytes = 2 * kKiB}));
}

TEST(SizeCostInAFile, BelongsToOneOfSeveralLimits) {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = "domain: d\ndescriptors:\n- key: k\n  rate_limits:\n"
               "  - {unit: hour, requests_per_unit: 5}\n"
               "  - {unit: minute, requests_per_unit: 9, cost: {of: response_bytes}}\n"}};
  const LoadResult loaded = LoadRules(files);
  ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
  EXPECT_FALSE(loaded.rules->rules()[0].limits[0].cost);
  EXPECT_EQ(loaded.rules->rules()[0].limits[1].cost, SizeCost{});
}

TEST(SizeCostInAFile, IsTriedOutInARollOut) {
  const LoadResult loaded = LoadLimit(
      "unit: minute, requests_per_unit: 100",
      "  rollout:\n    percent: 5\n"
      "    rate_limit: {unit: minute, requests_per_unit: 9, cost: {of: request_bytes}}\n");
  ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
  const Rule& rule = loaded.rules->rules()[0];
  EXPECT_FALSE(rule.limits[0].cost);
  EXPECT_EQ(rule.rollout->limits[0].cost, SizeCost{.of = SizeCost::Of::kRequestBytes});
}

TEST(SizeCostInAFile, IsADifferenceOfRules) {
  const LoadResult one = LoadLimit(std::string(kNumbers) + "{of: request_bytes, per: 1KiB}");
  const LoadResult other = LoadLimit(std::string(kNumbers) + "{of: request_bytes, per: 2KiB}");
  EXPECT_EQ(DifferencesOf(*one.rules, *other.rules).size(), 1u);
  EXPECT_TRUE(DifferencesOf(*one.rules, *one.rules).empty());
}

TEST(SizeCostInAFile, IsExplained) {
  const LoadResult loaded = LoadLimit(std::string(kNumbers) + "{of: request_bytes, per: 1KiB}");
  EXPECT_EQ(Describe(loaded.rules->rules()[0].limits[0]),
            "100 per 1m, token_bucket, costs 1 for each 1KiB of request_bytes, reserve 1KiB");
}

TEST(SizeCostInAFile, IsReportedIfItIsWrong) {
  EXPECT_EQ(ProblemOf("5"),
            "f.yaml:4:60: cost is not a mapping\n"
            "  hint: cost: {of: response_bytes, per: 1KiB, reserve: 64KiB} counts sizes; a fixed "
            "cost belongs to the request\n");
  EXPECT_EQ(ProblemOf("{per: 1KiB}"),
            "f.yaml:4:60: cost has no 'of'\n"
            "  hint: add of: request_bytes or of: response_bytes\n");
  EXPECT_EQ(ProblemOf("{of: response_byte}"),
            "f.yaml:4:65: invalid of 'response_byte'\n"
            "  hint: did you mean 'response_bytes'?\n");
  EXPECT_EQ(
      ProblemOf("{of: request_bytes, per: 1KB, reserve: none}"),
      "f.yaml:4:85: invalid per: \"1KB\" is not a size: write a whole number from 1 with B, "
      "KiB, MiB, GiB or TiB, such as 64KiB\n"
      "  hint: sizes are of bytes: 1KiB is 1024 of them\n"
      "f.yaml:4:99: invalid reserve: \"none\" is not a size: write a whole number from 1 with "
      "B, KiB, MiB, GiB or TiB, such as 64KiB\n"
      "  hint: sizes are of bytes: 1KiB is 1024 of them\n");
  EXPECT_EQ(ProblemOf("{of: request_bytes, unit: minute}").find("problem"), std::string::npos);
  EXPECT_EQ(ProblemOf("{of: request_bytes, burst: 2}"),
            "f.yaml:4:80: config error, misplaced key 'burst'\n"
            "  hint: 'burst' belongs under rate_limit\n");
}

TEST(SizeCostInAFile, IsRefusedIfItsLimitCannotHaveIt) {
  EXPECT_EQ(ProblemOf("{of: request_bytes}", ", algorithm: leaky_bucket, queue: true"),
            "f.yaml:4:60: a queue cannot have a cost by size: it takes nothing back\n"
            "  hint: leave out queue, or cost\n");
  EXPECT_EQ(ProblemOf("{of: request_bytes}", ", algorithm: sliding_window_log"),
            "f.yaml:4:60: sliding_window_log cannot have a cost by size: it takes nothing back "
            "exactly\n"
            "  hint: sliding_window_counter can\n");
  EXPECT_EQ(ProblemOf("{of: request_bytes}", ", algorithm: fixed_window, count_denied: true"),
            "f.yaml:4:60: count_denied cannot have a cost by size: denied requests have no size\n"
            "  hint: leave out count_denied, or cost\n");
  EXPECT_EQ(ProblemOf("{of: response_bytes, per: 1KiB, reserve: 101KiB}"),
            "f.yaml:4:60: the reserve of 101KiB costs 101, and the limit is 100: no request would "
            "pass\n"
            "  hint: make reserve smaller, or per or the limit larger\n");
  EXPECT_EQ(ProblemOf("{of: response_bytes, per: 1KiB, reserve: 100KiB}"), "");
  EXPECT_EQ(Describe(LoadLimit("unlimited: true, cost: {of: request_bytes}").problems),
            "f.yaml:4:39: should not specify cost when unlimited\n"
            "  hint: leave out cost, or unlimited\n");
}

}  // namespace size_cost_test
}  // namespace headgate::rule
