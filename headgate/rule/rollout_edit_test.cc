#include "headgate/rule/rollout_edit.h"

#include <gtest/gtest.h>

#include "headgate/rule/load.h"

namespace headgate::rule {
namespace {

constexpr std::string_view kFile = R"(# The shop's limits.
domain: shop
descriptors:
  - key: user   # each user
    rate_limit:
      unit: minute
      requests_per_unit: 10   # as in the contract
      name: per_user
    descriptors:
      - key: path
        rate_limit: {unit: second, requests_per_unit: 1}
)";

const std::vector<RuleEntry> kUser{{.key = "user"}};
const std::vector<RuleEntry> kPath{{.key = "user"}, {.key = "path"}};

std::shared_ptr<const RuleTree> Load(const absl::StatusOr<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return nullptr;
  const RuleFile file{.name = "f", .text = *text};
  LoadResult result = LoadRules({&file, 1});
  EXPECT_TRUE(result.ok()) << *text << Describe(result.problems);
  return result.rules;
}

constexpr std::string_view kFivePercent =
    R"({"percent": 5, "rate_limit": {"unit": "minute", "requests_per_unit": 20}})";

TEST(RolloutEdit, BeginsBesideTheRulesOwnLimit) {
  const auto text = PutRollout(kFile, kUser, kFivePercent);
  const auto rules = Load(text);
  ASSERT_NE(rules, nullptr);
  const Rule& rule = rules->rules()[0];
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 10u);
  ASSERT_NE(rule.rollout, nullptr);
  EXPECT_EQ(rule.rollout->keys_ppm, 50'000u);
  EXPECT_EQ(rule.rollout->limits[0].limit.spec().requests, 20u);
  EXPECT_NE(text->find("requests_per_unit: 10   # as in the contract\n"), std::string::npos);
  EXPECT_NE(text->find("- key: user   # each user\n"), std::string::npos);
}

TEST(RolloutEdit, AnotherPercentageKeepsTheLimit) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto rules = Load(PutRollout(*begun, kUser, "{percent: 50}"));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].rollout->keys_ppm, 500'000u);
  EXPECT_EQ(rules->rules()[0].rollout->limits[0].limit.spec().requests, 20u);
}

TEST(RolloutEdit, IsPromotedWithTheNameOfTheRule) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto text = PromoteRollout(*begun, kUser);
  const auto rules = Load(text);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].rollout, nullptr);
  EXPECT_EQ(rules->rules()[0].limits[0].limit.spec().requests, 20u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
  EXPECT_NE(text->find("requests_per_unit: 20   # as in the contract\n"), std::string::npos)
      << *text;
  EXPECT_EQ(rules->rules()[1].limits[0].limit.spec().requests, 1u);
}

TEST(RolloutEdit, TakenBackTheFileIsAsItWas) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto text = EndRollout(*begun, kUser);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, kFile);
}

TEST(RolloutEdit, SeveralLimitsReplaceOneAndTheOtherWayRound) {
  const auto begun =
      PutRollout(kFile, kPath,
                 "{shadow: true, rate_limits: [{unit: second, requests_per_unit: 2}, {unit: day, "
                 "requests_per_unit: 3}]}");
  ASSERT_TRUE(begun.ok()) << begun.status();
  const auto several = PromoteRollout(*begun, kPath);
  auto rules = Load(several);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[1].limits.size(), 2u);
  const auto again =
      PutRollout(*several, kPath, "{shadow: true, rate_limit: {unit: day, requests_per_unit: 9}}");
  ASSERT_TRUE(again.ok()) << again.status();
  rules = Load(PromoteRollout(*again, kPath));
  ASSERT_NE(rules, nullptr);
  ASSERT_EQ(rules->rules()[1].limits.size(), 1u);
  EXPECT_EQ(rules->rules()[1].limits[0].limit.spec().requests, 9u);
}

TEST(RolloutEdit, PromotedToSeveralLimitsTheRuleKeepsItsOwnFields) {
  const auto begun = PutRollout(kFile, kUser,
                                "{shadow: true, rate_limits: [{unit: second, requests_per_unit: "
                                "2}, {unit: day, requests_per_unit: 3}]}");
  ASSERT_TRUE(begun.ok()) << begun.status();
  const auto several = PromoteRollout(*begun, kUser);
  auto rules = Load(several);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].limits.size(), 2u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
  const auto again =
      PutRollout(*several, kUser, "{percent: 1, rate_limit: {unit: day, requests_per_unit: 9}}");
  ASSERT_TRUE(again.ok()) << again.status();
  rules = Load(PromoteRollout(*again, kUser));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].limits.size(), 1u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
}

TEST(RolloutEdit, ARuleWithRulesBelowItIsRemovedWithItsRollout) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto rules = Load(RemoveRule(*begun, kUser));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules().size(), 1u);
}

TEST(RolloutEdit, SaysWhatIsMissing) {
  EXPECT_TRUE(absl::IsNotFound(PromoteRollout(kFile, kUser).status()));
  EXPECT_TRUE(absl::IsNotFound(EndRollout(kFile, kUser).status()));
  const std::vector<RuleEntry> nobody{{.key = "nobody"}};
  EXPECT_TRUE(absl::IsNotFound(PutRollout(kFile, nobody, kFivePercent).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PutRollout(kFile, kUser, "5").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PutRollout(kFile, kUser, "{").status()));
}

TEST(DomainOfText, IsTheDomainOfTheFile) {
  EXPECT_EQ(DomainOf(kFile), "shop");
  EXPECT_EQ(DomainOf("descriptors: []"), "");
  EXPECT_EQ(DomainOf("domain: ["), "");
  EXPECT_EQ(DomainOf(""), "");
}

}  // namespace
}  // namespace headgate::rule
