#include "headgate/observe/detail_label.h"

#include <gtest/gtest.h>

#include <vector>

#include "headgate/rule/read/load.h"

namespace headgate::observe {
namespace detail_label_test {

// A rule with a path such as "api_key_gold.path", and a request that it matched.
struct Decided {
  Decided(std::string path, std::vector<rule::Entry> request) : entries(std::move(request)) {
    rule.path = std::move(path);
  }

  rule::Rule rule;
  rule::Match match;
  std::vector<rule::Entry> entries;

  std::string Label() {
    match.rule = &rule;
    match.step_count = static_cast<uint32_t>(entries.size());
    const limiter::DecisionEvent event{.outcome = limiter::Outcome::kAllowed,
                                       .cost = 1,
                                       .rule = &rule,
                                       .series = 0,
                                       .domain = "edge",
                                       .entries = entries,
                                       .match = &match};
    return DetailLabel::Of(event).Text(1'000);
  }
};

TEST(DetailLabel, DetailedMetricShowsEveryValue) {
  Decided decided("api_key_gold.path", {{"api_key", "gold"}, {"path", "/search"}});
  decided.rule.detailed_metric = true;
  EXPECT_EQ(decided.Label(), "api_key_gold.path_/search");
}

TEST(DetailLabel, ASharedPatternStandsForItsValues) {
  const std::string pattern = "api_key_gold*";
  Decided decided("api_key_gold*.path", {{"api_key", "gold-17"}, {"path", "/search"}});
  decided.rule.detailed_metric = true;
  decided.match.steps[0].shared_pattern = &pattern;
  EXPECT_EQ(decided.Label(), "api_key_gold*.path_/search");
}

TEST(DetailLabel, ValueToMetricShowsTheMarkedValuesOnly) {
  Decided decided("api_key_gold.path.method",
                  {{"api_key", "gold"}, {"path", "/search"}, {"method", "GET"}});
  decided.rule.value_to_metric = true;
  decided.match.steps[1].value_in_metric = true;
  EXPECT_EQ(decided.Label(), "api_key_gold.path_/search.method");
}

TEST(DetailLabel, ValueToMetricKeepsAPatternAsTheRuleHasIt) {
  Decided decided("address_10.0.*.path", {{"address", "10.0.0.7"}, {"path", "/a.b"}});
  decided.rule.value_to_metric = true;
  decided.match.steps[1].value_in_metric = true;
  EXPECT_EQ(decided.Label(), "address_10.0.*.path_/a.b");
}

TEST(DetailLabel, AKeyThatLooksLikeKeyAndValueIsItself) {
  Decided decided("user_agent.user", {{"user_agent", "curl"}, {"user", "ann"}});
  decided.rule.value_to_metric = true;
  EXPECT_EQ(decided.Label(), "user_agent.user");
}

// Labels agree with rules that were loaded and matched for real.
TEST(DetailLabel, ReadsRulesAsTheyAreLoaded) {
  constexpr std::string_view kText = R"(
domain: edge
descriptors:
  - key: address
    value: 10.0.*
    share_threshold: true
    descriptors:
      - key: path
        detailed_metric: true
        rate_limit: {unit: second, requests_per_unit: 1}
  - key: plan
    value: gold
    descriptors:
      - key: user
        value: a*
        descriptors:
          - key: path
            value_to_metric: true
            rate_limit: {unit: second, requests_per_unit: 1}
)";
  const rule::read::LoadResult loaded =
      rule::read::LoadRules(std::vector<rule::read::RuleFile>{{"edge.yaml", std::string(kText)}});
  ASSERT_TRUE(loaded.ok());
  const auto label_of = [&](const std::vector<rule::Entry>& entries) {
    rule::Match match;
    loaded.rules->Find("edge", entries, match);
    const limiter::DecisionEvent event{
        limiter::Outcome::kAllowed, 1, match.rule, 0, "edge", entries, &match};
    return match.rule == nullptr ? "no rule" : DetailLabel::Of(event).Text(1'000);
  };
  EXPECT_EQ(label_of({{"address", "10.0.0.7"}, {"path", "/a"}}), "address_10.0.*.path_/a");
  EXPECT_EQ(label_of({{"plan", "gold"}, {"user", "ann"}, {"path", "/a"}}),
            "plan_gold.user_a*.path_/a");
}

TEST(DetailLabel, NeverReadsBeyondAPathThatDoesNotFit) {
  Decided decided("x", {{"api_key", "gold"}, {"path", "/"}, {"", ""}});
  decided.rule.value_to_metric = true;
  EXPECT_EQ(decided.Label(), "x..");
}

}  // namespace detail_label_test
}  // namespace headgate::observe
