#include "headgate/rule/concurrency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/rule/explain.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/read/one_liner.h"
#include "headgate/rule/rule_difference.h"

namespace headgate::rule {
namespace concurrency_test {

using read::LoadResult;
using read::LoadRules;
using read::ParsedOneLiner;
using read::ParseOneLiner;
using read::RuleFile;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

LoadResult Load(std::string_view rate_limit) {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = fmt::format("domain: d\ndescriptors:\n- key: k\n  {}\n", rate_limit)}};
  return LoadRules(files);
}

// The only problem of a limit, without its hint.
std::string ProblemOf(std::string_view rate_limit) {
  const LoadResult result = Load(rate_limit);
  EXPECT_FALSE(result.ok()) << rate_limit;
  if (result.problems.empty()) return "";
  EXPECT_FALSE(result.problems.front().hint.empty());
  return result.problems.front().message;
}

TEST(Concurrency, IsALimitOfARuleFile) {
  const LoadResult result = Load("rate_limit: {algorithm: concurrency, requests: 20, ttl: 30s}");
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  EXPECT_TRUE(result.warnings.empty()) << Describe(result.warnings);
  const Rule& rule = result.rules->rules()[0];
  EXPECT_EQ(rule.concurrency, (ConcurrencyLimit{.max = 20, .ttl = 30s}));
  EXPECT_TRUE(rule.limits.empty());
  EXPECT_FALSE(rule.unlimited);
}

TEST(Concurrency, StandsBesideOtherLimits) {
  const LoadResult result = Load(
      "rate_limits: [{algorithm: concurrency, requests: 4, ttl: 1m, on_store_failure: deny}, "
      "{unit: minute, requests_per_unit: 60}]");
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  const Rule& rule = result.rules->rules()[0];
  EXPECT_EQ(rule.concurrency, (ConcurrencyLimit{.max = 4, .ttl = 60s}));
  ASSERT_EQ(rule.limits.size(), 1u);
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 60u);
  EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kDeny);
}

TEST(Concurrency, NeedsANumberAndATtlWithinBounds) {
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, ttl: 30s}"),
            "concurrency needs requests");
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, requests: 20}"),
            "concurrency needs ttl");
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, requests: 10001, ttl: 30s}"),
            "at most 10000 requests of a key can be in flight, not 10001");
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, requests: 1, ttl: 999ms}"),
            "the ttl must be from 1s to 1d, not 999ms");
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, requests: 1, ttl: 25h}"),
            "the ttl must be from 1s to 1d, not 1d1h");
  EXPECT_THAT(ProblemOf("rate_limit: {algorithm: concurrency, requests: 1, ttl: soon}"),
              HasSubstr("invalid ttl: "));
  EXPECT_THAT(ProblemOf("rate_limit: {algorithm: concurrency, requests: x, ttl: 30s}"),
              HasSubstr("into uint32"));
  EXPECT_TRUE(Load("rate_limit: {algorithm: concurrency, requests: 10000, ttl: 24h}").ok());
  EXPECT_TRUE(Load("rate_limit: {algorithm: concurrency, requests: 0, ttl: 1s}").ok());
}

TEST(Concurrency, RefusesTheWordsOfOtherLimits) {
  for (const auto& [word, value] :
       std::vector<std::pair<std::string, std::string>>{{"align", "epoch"},
                                                        {"burst", "5"},
                                                        {"count_denied", "true"},
                                                        {"max_delay", "1s"},
                                                        {"period", "1s"},
                                                        {"queue", "true"},
                                                        {"requests_per_unit", "5"},
                                                        {"sharing", "exact"},
                                                        {"strict", "true"},
                                                        {"unit", "minute"}}) {
    EXPECT_EQ(
        ProblemOf(fmt::format(
            "rate_limit: {{algorithm: concurrency, requests: 20, ttl: 30s, {}: {}}}", word, value)),
        word + " does not apply to concurrency");
  }
}

TEST(Concurrency, ItsWordsDoNotBelongToOtherLimits) {
  EXPECT_EQ(ProblemOf("rate_limit: {unit: minute, requests_per_unit: 5, ttl: 30s}"),
            "ttl belongs to algorithm: concurrency");
  EXPECT_EQ(ProblemOf("rate_limit: {unit: minute, requests: 5}"),
            "requests belongs to algorithm: concurrency");
  EXPECT_EQ(ProblemOf("rate_limit: {unlimited: true, ttl: 30s}"),
            "should not specify ttl when unlimited");
}

TEST(Concurrency, ARuleHasOne) {
  EXPECT_EQ(ProblemOf("rate_limits: [{algorithm: concurrency, requests: 4, ttl: 1m}, "
                      "{algorithm: concurrency, requests: 5, ttl: 1m}]"),
            "a second limit of concurrency");
}

TEST(Concurrency, IsNotRolledOut) {
  EXPECT_EQ(ProblemOf("rate_limit: {unit: minute, requests_per_unit: 5}\n"
                      "  rollout: {shadow: true, rate_limit: "
                      "{algorithm: concurrency, requests: 4, ttl: 1m}}"),
            "a roll-out cannot try a limit of concurrency");
  EXPECT_EQ(ProblemOf("rate_limit: {algorithm: concurrency, requests: 4, ttl: 1m}\n"
                      "  rollout: {shadow: true, rate_limit: {unit: day, requests_per_unit: 1}}"),
            "a roll-out of a rule that limits only concurrency");
}

TEST(Concurrency, IsARuleOfOneLine) {
  const ParsedOneLiner parsed = ParseOneLiner("api_key=gold: 20 concurrency ttl 30s");
  ASSERT_FALSE(parsed.error) << parsed.error->message;
  EXPECT_EQ(parsed.rule.concurrency, (ConcurrencyLimit{.max = 20, .ttl = 30s}));
  EXPECT_EQ(ParseOneLiner("k: ttl 1m concurrency 3").rule.concurrency,
            (ConcurrencyLimit{.max = 3, .ttl = 60s}));
  const LoadResult result = LoadRules({}, {.one_liners = {"k: 20 concurrency ttl 30s"}});
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  EXPECT_EQ(result.rules->rules()[0].concurrency, (ConcurrencyLimit{.max = 20, .ttl = 30s}));
}

TEST(Concurrency, ALineThatDoesNotFitIsRefused) {
  const auto problem_of = [](std::string_view limit) {
    const ParsedOneLiner parsed = ParseOneLiner(fmt::format("k: {}", limit));
    return parsed.error ? fmt::format("{}: {}", parsed.error->column, parsed.error->message) : "";
  };
  EXPECT_EQ(problem_of("20 concurrency"), "7: concurrency needs a ttl");
  EXPECT_EQ(problem_of("concurrency ttl 30s"), "4: concurrency needs a number of requests");
  EXPECT_THAT(problem_of("20 concurrency ttl"), StartsWith("22: "));
  EXPECT_EQ(problem_of("20/s concurrency ttl 30s"),
            "9: concurrency goes with REQUESTS and ttl alone");
  EXPECT_EQ(problem_of("20 burst 3 concurrency ttl 30s"),
            "15: concurrency goes with REQUESTS and ttl alone");
  EXPECT_EQ(problem_of("20 concurrency concurrency ttl 30s"), "19: a second algorithm");
  EXPECT_EQ(problem_of("20 concurrency ttl 1s ttl 2s"), "26: a second ttl");
  EXPECT_EQ(problem_of("99999 concurrency ttl 1s"),
            "10: at most 10000 requests of a key can be in flight, not 99999");
  EXPECT_EQ(problem_of("20"), "4: unknown word \"20\"");
  EXPECT_EQ(problem_of("1/s ttl 30s"), "12: ttl is for concurrency");
}

TEST(Concurrency, IsExplained) {
  const LoadResult result = Load("rate_limit: {algorithm: concurrency, requests: 20, ttl: 30s}");
  const std::vector<Entry> entries{{.key = "k", .value = "v"}};
  EXPECT_THAT(Describe(Explain(*result.rules, "d", entries)),
              HasSubstr("limit     20 in flight, concurrency, ttl 30s\n"));
  const LoadResult nothing = Load("rate_limit: {algorithm: concurrency, requests: 0, ttl: 30s}");
  EXPECT_THAT(Describe(Explain(*nothing.rules, "d", entries)), HasSubstr(": nothing passes\n"));
}

TEST(Concurrency, AChangeIsADifference) {
  const auto before = Load("rate_limit: {algorithm: concurrency, requests: 20, ttl: 30s}").rules;
  const auto same = Load("rate_limit: {requests: 20, ttl: 30s, algorithm: concurrency}").rules;
  const auto after = Load("rate_limit: {algorithm: concurrency, requests: 20, ttl: 31s}").rules;
  EXPECT_TRUE(DifferencesOf(*before, *same).empty());
  EXPECT_EQ(DifferencesOf(*before, *after).size(), 1u);
}

}  // namespace concurrency_test
}  // namespace headgate::rule
