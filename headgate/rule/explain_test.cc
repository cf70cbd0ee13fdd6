#include "headgate/rule/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/rule/read/load.h"

namespace headgate::rule {
namespace explain_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

constexpr std::string_view kRules = R"(
domain: edge
descriptors:
- key: api_key
  rate_limit: {unit: minute, requests_per_unit: 10}
  descriptors:
  - key: path
    rate_limit: {unit: second, requests_per_unit: 2}
- key: api_key
  value: gold
  rate_limit: {name: gold, period: 20s, requests_per_unit: 100, burst: 50, replaces: [{name: other}]}
- key: api_key
  value: team-*
  share_threshold: true
  rate_limit: {unit: hour, requests_per_unit: 1000}
- key: api_key
  value: team-red-*
  shadow_mode: true
  rate_limit: {unit: hour, requests_per_unit: 5}
- key: tenant
  descriptors:
  - key: user
    rate_limit: {unlimited: true}
)";

std::string ExplainText(std::vector<Entry> entries, std::string_view domain = "edge") {
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = std::string(kRules)}};
  const LoadResult result = LoadRules(files);
  EXPECT_EQ(Describe(result.problems), "");
  return Describe(Explain(*result.rules, domain, entries));
}

TEST(Explain, ShowsTheExactMatchAndWhatCameAfterIt) {
  EXPECT_EQ(
      ExplainText({{"api_key", "gold"}}),
      "domain    edge\n"
      "step 1    api_key=gold\n"
      "          matched \"api_key_gold\": exact\n"
      "          not: pattern \"api_key_team-*\" does not match\n"
      "          not: pattern \"api_key_team-red-*\" does not match\n"
      "          not: \"api_key\" (the key alone) comes after an exact value and after patterns\n"
      "rule      api_key_gold (name \"gold\")\n"
      "limit     100 per 20s, token_bucket, burst 50\n"
      "replaces  \"other\"\n"
      "bucket    edge, api_key=gold\n"
      "so        rule \"gold\" applies\n");
}

TEST(Explain, ShowsTheFirstPatternAndThoseThatStandLater) {
  EXPECT_EQ(
      ExplainText({{"api_key", "team-red-7"}}),
      "domain    edge\n"
      "step 1    api_key=team-red-7\n"
      "          matched \"api_key_team-*\": first pattern in the file's order that matches\n"
      "          not: \"api_key_team-red-7\" has no rule\n"
      "          not: pattern \"api_key_team-red-*\" matches too, but comes later in the file\n"
      "          not: \"api_key\" (the key alone) comes after an exact value and after patterns\n"
      "rule      api_key_team-*\n"
      "limit     1000 per 1h, fixed_window, count_denied\n"
      "bucket    edge, api_key_team-* (one for all values that match)\n"
      "so        rule \"api_key_team-*\" applies\n");
}

TEST(Explain, ShowsTheKeyAlone) {
  EXPECT_EQ(ExplainText({{"api_key", "x"}, {"path", "/"}}),
            "domain    edge\n"
            "step 1    api_key=x\n"
            "          matched \"api_key\": the key alone, for every value\n"
            "          not: \"api_key_x\" has no rule\n"
            "          not: pattern \"api_key_team-*\" does not match\n"
            "          not: pattern \"api_key_team-red-*\" does not match\n"
            "step 2    path=/\n"
            "          matched \"path\": the key alone, for every value\n"
            "          not: \"path_/\" has no rule\n"
            "rule      api_key.path\n"
            "limit     2 per 1s, fixed_window, count_denied\n"
            "bucket    edge, api_key=x, path=/\n"
            "so        rule \"api_key.path\" applies\n");
}

TEST(Explain, SaysThatThereIsNoWayBack) {
  EXPECT_EQ(
      ExplainText({{"api_key", "gold"}, {"path", "/"}}),
      "domain    edge\n"
      "step 1    api_key=gold\n"
      "          matched \"api_key_gold\": exact\n"
      "          not: pattern \"api_key_team-*\" does not match\n"
      "          not: pattern \"api_key_team-red-*\" does not match\n"
      "          not: \"api_key\" (the key alone) comes after an exact value and after patterns\n"
      "          not: \"api_key\" would lead to \"path=/\", but the search does not go back once "
      "\"api_key_gold\" has matched\n"
      "so        the descriptor is deeper than the rules: nothing is below \"api_key_gold\", and 1 "
      "more entry follows: "
      "no limit\n");
}

TEST(Explain, SaysThatANodeHasNoLimitOfItsOwn) {
  EXPECT_EQ(
      ExplainText({{"tenant", "a"}}),
      "domain    edge\n"
      "step 1    tenant=a\n"
      "          matched \"tenant\": the key alone, for every value\n"
      "          not: \"tenant_a\" has no rule\n"
      "          not: pattern \"api_key_team-*\" does not match\n"
      "          not: pattern \"api_key_team-red-*\" does not match\n"
      "so        \"tenant\" has no rate_limit of its own, only descriptors below it: no limit\n");
}

TEST(Explain, SaysThatARuleIsUnlimited) {
  EXPECT_THAT(ExplainText({{"tenant", "a"}, {"user", "b"}}),
              ::testing::EndsWith("rule      tenant.user\n"
                                  "limit     none: unlimited\n"
                                  "so        rule \"tenant.user\" is unlimited\n"));
}

TEST(Explain, ListsWhatThereIsWhereNothingMatches) {
  EXPECT_THAT(
      ExplainText({{"tenant", "a"}, {"usr", "b"}}),
      ::testing::EndsWith(
          "step 2    usr=b\n"
          "          matched nothing\n"
          "          not: \"usr_b\" has no rule\n"
          "          not: \"usr\" (the key alone) has no rule\n"
          "so        nothing at this level matches \"usr=b\"; there is \"user\": no limit\n"));
  EXPECT_THAT(
      ExplainText({{"x", ""}}),
      ::testing::EndsWith(
          "so        nothing in the domain matches \"x\"; there is \"api_key\", \"api_key_gold\", "
          "\"api_key_team-*\", \"api_key_team-red-*\", \"tenant\": no limit\n"));
}

TEST(Explain, SaysThatADomainIsUnknownOrADescriptorEmpty) {
  EXPECT_EQ(ExplainText({{"a", "b"}}, "egde"),
            "domain    egde\nso        no rule file has the domain \"egde\"; there is \"edge\": no "
            "limit\n");
  EXPECT_EQ(ExplainText({}), "domain    edge\nso        the descriptor has no entries: no limit\n");
}

TEST(Explain, AgreesWithFind) {
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = std::string(kRules)}};
  const LoadResult result = LoadRules(files);
  const std::vector<Entry> choices{{"api_key", "gold"}, {"api_key", "team-1"}, {"api_key", "x"},
                                   {"path", "/"},       {"tenant", "t"},       {"user", "u"},
                                   {"other", ""}};
  for (const Entry& first : choices) {
    for (const Entry& second : choices) {
      for (const std::vector<Entry>& entries :
           {std::vector<Entry>{first}, std::vector<Entry>{first, second}}) {
        Match match;
        result.rules->Find("edge", entries, match);
        const Explanation explanation = Explain(*result.rules, "edge", entries);
        EXPECT_EQ(explanation.rule, match.rule);
        EXPECT_NE(explanation.verdict, "");
      }
    }
  }
}

TEST(Explain, NamesTheDomainsThatThereAre) {
  EXPECT_EQ(ExplainText({{"api_key", "k"}}, "other"),
            "domain    other\n"
            "so        no rule file has the domain \"other\"; there is \"edge\": no limit\n");
}

TEST(Explain, SaysThatALimitOfNothingLetsNothingPass) {
  const LoadResult result = LoadRules({}, {.one_liners = {"user: 0/minute"}});
  ASSERT_TRUE(result.ok());
  const std::vector<Entry> entries{{"user", "ann"}};
  EXPECT_THAT(Describe(Explain(*result.rules, "default", entries)),
              ::testing::HasSubstr(": nothing passes\n"));
}

}  // namespace explain_test
}  // namespace headgate::rule
