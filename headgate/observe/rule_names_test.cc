#include "headgate/observe/rule_names.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace headgate::observe {
namespace rule_names_test {

TEST(RuleNames, NumbersEachRuleOnceByDomainAndLabel) {
  RuleNames names(10);
  EXPECT_EQ(names.Add("a", "k"), 1u);
  EXPECT_EQ(names.Add("a", "named"), 2u);
  EXPECT_EQ(names.Add("b", "k"), 3u);
  EXPECT_EQ(names.Add("a", "k"), 1u);
  EXPECT_EQ(names.Find("a", "named"), 2u);
  EXPECT_EQ(names.Find("b", "named"), std::nullopt);
  EXPECT_EQ(names.At(3).domain, "b");
  EXPECT_EQ(names.List().size(), 4u);
}

TEST(RuleNames, AllFurtherRulesHaveOneNumber) {
  RuleNames names(1);
  EXPECT_EQ(names.Add("a", "k"), 1u);
  EXPECT_EQ(names.Add("a", "l"), RuleNames::kOther);
  EXPECT_EQ(names.Find("a", "l"), std::nullopt);
  EXPECT_EQ(names.Find("other", "other"), std::nullopt);
  EXPECT_EQ(names.At(RuleNames::kOther).rule, "other");
  EXPECT_EQ(names.Add("a", "k"), 1u);
}

}  // namespace rule_names_test
}  // namespace headgate::observe
