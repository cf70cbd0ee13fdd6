#include "headgate/observe/rule_names.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace headgate::observe {
namespace rule_names_test {

rule::Rule MakeRule(std::string domain, std::string path, std::string name = "") {
  rule::Rule rule;
  rule.domain = std::move(domain);
  rule.path = std::move(path);
  rule.name = std::move(name);
  return rule;
}

TEST(RuleNames, NumbersEachRuleOnceByDomainAndLabel) {
  RuleNames names(10);
  EXPECT_EQ(names.Add(MakeRule("a", "k")), 1u);
  EXPECT_EQ(names.Add(MakeRule("a", "k", "named")), 2u);
  EXPECT_EQ(names.Add(MakeRule("b", "k")), 3u);
  EXPECT_EQ(names.Add(MakeRule("a", "k")), 1u);
  EXPECT_EQ(names.Find("a", "named"), 2u);
  EXPECT_EQ(names.Find("b", "named"), std::nullopt);
  EXPECT_EQ(names.At(3).domain, "b");
  EXPECT_EQ(names.List().size(), 4u);
}

TEST(RuleNames, AllFurtherRulesHaveOneNumber) {
  RuleNames names(1);
  EXPECT_EQ(names.Add(MakeRule("a", "k")), 1u);
  EXPECT_EQ(names.Add(MakeRule("a", "l")), RuleNames::kOther);
  EXPECT_EQ(names.Find("a", "l"), std::nullopt);
  EXPECT_EQ(names.Find("other", "other"), std::nullopt);
  EXPECT_EQ(names.At(RuleNames::kOther).rule, "other");
  EXPECT_EQ(names.Add(MakeRule("a", "k")), 1u);
}

}  // namespace rule_names_test
}  // namespace headgate::observe
