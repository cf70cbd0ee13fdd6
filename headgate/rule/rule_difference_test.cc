#include "headgate/rule/rule_difference.h"

#include <gtest/gtest.h>

#include "headgate/rule/read/load.h"

namespace headgate::rule {
namespace rule_difference_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

std::shared_ptr<const RuleSet> Load(const std::string& descriptors) {
  const RuleFile file{.name = "a.yaml", .text = "domain: a\ndescriptors:\n" + descriptors};
  LoadResult result = LoadRules({&file, 1});
  EXPECT_TRUE(result.ok());
  return result.rules;
}

std::string Limit(const std::string& key, int requests, const std::string& more = "") {
  return "- key: " + key +
         "\n  rate_limit: {unit: minute, requests_per_unit: " + std::to_string(requests) + more +
         "}\n";
}

TEST(RuleDifference, NamesTheRulesThatAreNewGoneOrDifferent) {
  const auto differences =
      DifferencesOf(*Load(Limit("same", 1) + Limit("changed", 1) + Limit("gone", 1)),
                    *Load(Limit("new", 1) + Limit("changed", 2) + Limit("same", 1)));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].after->path, "new");
  EXPECT_FALSE(differences[0].before.has_value());
  EXPECT_EQ(differences[1].before->path, "changed");
  EXPECT_EQ(differences[1].after->limits[0].limit.spec().requests, 2u);
  EXPECT_EQ(differences[2].before->path, "gone");
  EXPECT_FALSE(differences[2].after.has_value());
}

TEST(RuleDifference, SeesEveryWordOfARule) {
  const std::string plain = Limit("k", 1);
  for (const std::string& other :
       {Limit("k", 1, ", name: n"), Limit("k", 1, ", algorithm: token_bucket, burst: 2"),
        Limit("k", 1, ", on_store_failure: deny"), Limit("k", 1, ", sharing: exact"),
        plain + "  shadow_mode: true\n", plain + "  detailed_metric: true\n",
        plain + "  quota_unit: tokens\n", plain + "  rate_limit_fields: openai\n",
        plain + "  refusal: {body: no}\n"}) {
    EXPECT_EQ(DifferencesOf(*Load(plain), *Load(other)).size(), 1u) << other;
    EXPECT_EQ(DifferencesOf(*Load(other), *Load(other)).size(), 0u) << other;
  }
}

TEST(RuleDifference, NamesTheFieldsThatDiffer) {
  const auto differences =
      DifferencesOf(*Load(Limit("k", 1)), *Load(Limit("k", 2, ", name: n, sharing: strict")));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(OtherFieldsThatDiffer(*differences[0].before, *differences[0].after),
            (std::vector<std::string_view>{"name", "sharing"}));
}

TEST(RuleDifference, SeesThatTheFileOfARuleIsAllOrNothing) {
  const auto load = [](const std::string& word) {
    const RuleFile file{.name = "a.yaml",
                        .text = "domain: a\n" + word + "descriptors:\n" + Limit("k", 1) +
                                "  descriptors:\n  - key: below\n    rate_limit: {unit: minute, "
                                "requests_per_unit: 2}\n"};
    return LoadRules({&file, 1}).rules;
  };
  const auto differences = DifferencesOf(*load(""), *load("all_or_nothing: true\n"));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_FALSE(differences[1].before->all_or_nothing);
  EXPECT_TRUE(differences[1].after->all_or_nothing);
}

}  // namespace rule_difference_test
}  // namespace headgate::rule
