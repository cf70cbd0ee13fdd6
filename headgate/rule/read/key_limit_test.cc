#include "headgate/rule/read/key_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "headgate/rule/read/key_limit_members.h"
#include "headgate/rule/read/load.h"
#include "tests/source_dir.h"

namespace headgate::rule::read {
namespace key_limit_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LoadResult Load(std::string_view json, std::string_view key = "test-key") {
  return LoadRules(
      std::vector<RuleFile>{{"/limits/test-key", std::string(json), std::string(key)}});
}

const Rule& RuleOf(const LoadResult& loaded) {
  EXPECT_THAT(Describe(loaded.problems), IsEmpty());
  return loaded.rules->rules()[0];
}

std::vector<LimitSpec> SpecsOf(std::string_view json) {
  const LoadResult loaded = Load(json);
  std::vector<LimitSpec> specs;
  for (const RuleLimit& limit : RuleOf(loaded).limits) specs.push_back(limit.limit.spec());
  return specs;
}

// "line:column: message" of each problem.
std::vector<std::string> ProblemsOf(std::string_view json) {
  std::vector<std::string> out;
  for (const Problem& problem : Load(json).problems) {
    EXPECT_EQ(problem.file, "/limits/test-key");
    EXPECT_FALSE(problem.hint.empty()) << problem.message;
    out.push_back(fmt::format("{}:{}: {}", problem.line, problem.column, problem.message));
  }
  return out;
}

const LimitSpec kTenIn20s{
    .algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 20s, .align = Align::kFirstHit};

TEST(KeyLimit, TheShortestFormIsAWindowFromTheFirstRequestOn) {
  EXPECT_THAT(SpecsOf(R"({"Limit": 10, "WindowSeconds": 20})"), ElementsAre(kTenIn20s));
  EXPECT_THAT(SpecsOf("\n{\"WindowSeconds\":20,\t\"Limit\":10}\n"), ElementsAre(kTenIn20s));
}

TEST(KeyLimit, IsARuleOfItsApiKey) {
  const LoadResult loaded = Load(R"({"Limit": 10, "WindowSeconds": 20})", "a b/c");
  Match match;
  const Entry entry{.key = "api_key", .value = "a b/c"};
  ASSERT_TRUE(loaded.rules->Find("default", {&entry, 1}, match));
  EXPECT_EQ(match.rule, &RuleOf(loaded));
  const Entry other{.key = "api_key", .value = "a b"};
  loaded.rules->Find("default", {&other, 1}, match);
  EXPECT_EQ(match.rule, nullptr);
}

TEST(KeyLimit, AKeyWithAStarIsAPattern) {
  const LoadResult loaded = Load(R"({"Limit": 10, "WindowSeconds": 20})", "gold-*");
  Match match;
  const Entry entry{.key = "api_key", .value = "gold-17"};
  loaded.rules->Find("default", {&entry, 1}, match);
  EXPECT_NE(match.rule, nullptr);
}

TEST(KeyLimit, ReachesEveryAlgorithm) {
  const auto spec_of = [](std::string_view words) {
    return SpecsOf(fmt::format(R"({{"Limit": 10, "Window": "1m", {}}})", words))[0];
  };
  EXPECT_EQ(spec_of(R"("Algorithm": "token_bucket", "Burst": 5)"),
            (LimitSpec{.requests = 10, .period = 60s, .burst = 5}));
  EXPECT_EQ(spec_of(R"("Algorithm": "leaky_bucket")"),
            (LimitSpec{.algorithm = Algorithm::kLeakyBucket, .requests = 10, .period = 60s}));
  EXPECT_EQ(
      spec_of(R"("Queue": true, "MaxDelay": "12s")"),
      (LimitSpec{
          .algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 60s, .burst = 2}));
  EXPECT_EQ(spec_of(R"("Algorithm": "fixed_window", "Align": "epoch", "CountDenied": true)"),
            (LimitSpec{.algorithm = Algorithm::kFixedWindow,
                       .requests = 10,
                       .period = 60s,
                       .count_denied = true}));
  EXPECT_EQ(spec_of(R"("Algorithm": "token_bucket", "Overdraw": true)"),
            (LimitSpec{.requests = 10, .period = 60s, .overdraw = true}));
  LimitSpec blocks{.requests = 10, .period = 60s};
  blocks.block.Add(algorithm::BlockLengths::Seconds(600));
  EXPECT_EQ(spec_of(R"("Algorithm": "token_bucket", "Block": "10m")"), blocks);
  blocks.block.Add(algorithm::BlockLengths::Seconds(3600));
  EXPECT_EQ(spec_of(R"("Algorithm": "token_bucket", "Block": ["10m", "1h"])"), blocks);
  EXPECT_EQ(
      spec_of(R"("Algorithm": "sliding_window_counter")"),
      (LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 60s}));
  EXPECT_EQ(spec_of(R"("Algorithm": "sliding_window_log")"),
            (LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 60s}));
}

TEST(KeyLimit, ReachesConcurrency) {
  const LoadResult loaded =
      Load(R"({"Limit": 20, "Algorithm": "concurrency", "Ttl": "1m", "OnStoreFailure": "deny",
               "FallbackShare": 0.5})");
  const Rule& rule = RuleOf(loaded);
  EXPECT_EQ(rule.concurrency, (ConcurrencyLimit{.max = 20, .ttl = 60s}));
  EXPECT_THAT(rule.limits, IsEmpty());
  EXPECT_FALSE(rule.unlimited);
  EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kDeny);
  EXPECT_EQ(rule.fallback_share_ppm, 500'000u);
}

TEST(KeyLimit, ConcurrencyStandsBesideOtherLimits) {
  const LoadResult loaded =
      Load(R"({"Limits": [{"Limit": 0, "Algorithm": "concurrency", "Ttl": "1s"},
                          {"Limit": 10, "WindowSeconds": 20}], "Sharing": "exact"})");
  const Rule& rule = RuleOf(loaded);
  EXPECT_EQ(rule.concurrency, (ConcurrencyLimit{.max = 0, .ttl = 1s}));
  ASSERT_EQ(rule.limits.size(), 1u);
  EXPECT_EQ(rule.limits[0].limit.spec(), kTenIn20s);
  EXPECT_EQ(rule.sharing, Sharing::kExact);
}

TEST(KeyLimit, ConcurrencyHasItsOwnWordsAndBounds) {
  const auto problems = [](std::string_view words) {
    return ProblemsOf(fmt::format(R"({{"Algorithm": "concurrency"{}}})", words));
  };
  EXPECT_THAT(problems(R"(, "Ttl": "60s")"), ElementsAre("1:1: concurrency needs Limit"));
  EXPECT_THAT(problems(R"(, "Limit": 20)"), ElementsAre("1:1: concurrency needs Ttl"));
  EXPECT_THAT(problems(R"(, "Limit": 20, "WindowSeconds": 60)"),
              ElementsAre("1:1: concurrency needs Ttl",
                          "1:60: WindowSeconds does not apply to concurrency"));
  for (const std::string_view other :
       {R"("Align": "epoch")", R"("Burst": 5)", R"("CountDenied": true)", R"("MaxDelay": "1s")",
        R"("Queue": true)", R"("Window": "60s")"}) {
    const std::string_view word = other.substr(1, other.find('"', 1) - 1);
    EXPECT_THAT(problems(fmt::format(R"(, "Limit": 20, "Ttl": "60s", {})", other)),
                ElementsAre(HasSubstr(fmt::format(": {} does not apply to concurrency", word))));
  }
  EXPECT_THAT(problems(R"(, "Limit": 10001, "Ttl": "60s")"),
              ElementsAre("1:39: at most 10000 requests of a key can be in flight, not 10001"));
  EXPECT_THAT(
      problems(R"(, "Limit": 4294967297, "Ttl": "60s")"),
      ElementsAre("1:39: at most 10000 requests of a key can be in flight, not 4294967297"));
  EXPECT_THAT(problems(R"(, "Limit": 20, "Ttl": "999ms")"),
              ElementsAre("1:50: the ttl must be from 1s to 1d, not 999ms"));
  EXPECT_THAT(problems(R"(, "Limit": 20, "Ttl": "soon")"),
              ElementsAre(HasSubstr("1:50: invalid Ttl: ")));
  EXPECT_THAT(problems(R"(, "Limit": 20, "Ttl": 60)"), ElementsAre("1:50: Ttl is not a text"));
  EXPECT_THAT(problems(R"(, "Limit": 20, "Ttl": "60s", "Sharing": "exact")"),
              ElementsAre("1:68: Sharing does not apply to concurrency"));
  EXPECT_THAT(ProblemsOf(R"({"Limits": [{"Limit": 1, "Algorithm": "concurrency", "Ttl": "1s"},
{"Limit": 2, "Algorithm": "concurrency", "Ttl": "1s"}]})"),
              ElementsAre("2:27: a second limit of concurrency"));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 20, "Ttl": "60s"})"),
              ElementsAre("1:43: Ttl belongs to Algorithm: concurrency"));
}

TEST(KeyLimit, AWindowIsAUnitOrADuration) {
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "500ms"})")[0].period, 500ms);
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "hour"})")[0].period, 1h);
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "month"})")[0].align, Align::kCalendarMonth);
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "week"})")[0].align, Align::kCalendarWeek);
  EXPECT_EQ(SpecsOf(R"({"Limit": 0, "WindowSeconds": 1})")[0].requests, 0u);
}

TEST(KeyLimit, AWindowOfTheCalendarMayBeInATimeZone) {
  const LimitSpec spec =
      SpecsOf(R"({"Limit": 1, "Window": "day", "Timezone": "Europe/Berlin"})")[0];
  EXPECT_EQ(spec.align, Align::kCalendarDay);
  EXPECT_EQ(spec.zone, base::TimeZone::Load("Europe/Berlin").value());
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "day", "Timezone": "UTC"})")[0].align, Align::kEpoch);
  EXPECT_EQ(SpecsOf(R"({"Limit": 1, "Window": "day"})")[0].align, Align::kFirstHit);
  EXPECT_THAT(ProblemsOf(R"({"Limit": 1, "Window": "day", "Timezone": "Berlin"})"),
              ElementsAre("1:43: invalid Timezone 'Berlin': this system has no such time zone"));
  EXPECT_THAT(
      ProblemsOf(R"({"Limit": 1, "WindowSeconds": 60, "Timezone": "UTC"})"),
      ElementsAre("1:47: a time zone is for a fixed_window whose period is day, week, month "
                  "or year"));
}

TEST(KeyLimit, TakesSeveralLimitsAndTheWordsOfTheRule) {
  const LoadResult loaded =
      Load(R"({"Limits": [{"Limit": 10, "WindowSeconds": 20}, {"Limit": 1000, "Window": "hour"}],
               "Name": "gold", "ShadowMode": true, "Sharing": "strict", "OnStoreFailure": "deny",
               "FallbackShare": 0.25})");
  const Rule& rule = RuleOf(loaded);
  ASSERT_EQ(rule.limits.size(), 2u);
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 1000u) << "the longest period first";
  EXPECT_EQ(rule.limits[1].limit.spec(), kTenIn20s);
  EXPECT_EQ(rule.name, "gold");
  EXPECT_TRUE(rule.shadow_mode);
  EXPECT_EQ(rule.sharing, Sharing::kStrict);
  EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kDeny);
  EXPECT_EQ(rule.fallback_share_ppm, 250'000u);
}

TEST(KeyLimit, MayBeStrictAsInARuleFile) {
  const auto sharing = [](std::string_view words) {
    return RuleOf(Load(fmt::format(R"({{"Limit": 10, "WindowSeconds": 20, {}}})", words))).sharing;
  };
  EXPECT_EQ(sharing(R"("Strict": true)"), Sharing::kStrict);
  EXPECT_EQ(sharing(R"("Strict": true, "Sharing": "strict")"), Sharing::kStrict);
  EXPECT_EQ(sharing(R"("Strict": false)"), std::nullopt);
  EXPECT_EQ(sharing(R"("Strict": "lock")"), Sharing::kLocked);
  EXPECT_EQ(sharing(R"("Strict": "lock", "OnStoreFailure": "deny")"), Sharing::kLocked);
  const auto problems = [](std::string_view words) {
    return ProblemsOf(fmt::format(R"({{"Limit": 10, "WindowSeconds": 20, {}}})", words));
  };
  EXPECT_THAT(problems(R"("Strict": "yes")"),
              ElementsAre("1:46: Strict is neither true nor false nor lock"));
  EXPECT_THAT(problems(R"("Strict": [])"),
              ElementsAre("1:46: Strict is neither true nor false nor lock"));
  EXPECT_THAT(problems(R"("Strict": true, "Sharing": "leased")"),
              ElementsAre("1:46: Strict contradicts Sharing"));
  EXPECT_THAT(problems(R"("Strict": "lock", "OnStoreFailure": "allow")"),
              ElementsAre("1:72: OnStoreFailure contradicts Strict: lock, which refuses what it "
                          "cannot decide"));
  EXPECT_THAT(
      ProblemsOf(R"({"Limit": 2, "Algorithm": "concurrency", "Ttl": "60s", "Strict": true})"),
      ElementsAre("1:66: Strict does not apply to concurrency"));
}

TEST(KeyLimit, UnlimitedHasNoLimit) {
  const LoadResult loaded = Load(R"({"Unlimited": true})");
  EXPECT_TRUE(RuleOf(loaded).unlimited);
  EXPECT_THAT(RuleOf(loaded).limits, IsEmpty());
  EXPECT_THAT(ProblemsOf(R"({"Unlimited": true, "Limit": 1})"),
              ElementsAre("1:30: both Unlimited and Limit"));
  EXPECT_THAT(ProblemsOf(R"({"Unlimited": true, "Limits": []})"),
              ElementsAre("1:31: both Unlimited and Limits"));
}

TEST(KeyLimit, TakesYamlToo) {
  EXPECT_THAT(SpecsOf("Limit: 10\nWindowSeconds: 20\n"), ElementsAre(kTenIn20s));
}

TEST(KeyLimit, RefusesWhatIsNoObject) {
  EXPECT_THAT(ProblemsOf(""), ElementsAre("1:1: the limit is empty"));
  EXPECT_THAT(ProblemsOf(" \n"), ElementsAre("1:1: the limit is empty"));
  EXPECT_THAT(ProblemsOf("{\"Limit\": 10,\n \"WindowSeconds\": 20"),
              ElementsAre(HasSubstr("3:1: ")));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 20} x)"),
              ElementsAre(HasSubstr("1:36: ")));
  EXPECT_THAT(ProblemsOf("{\"Limit\": 10, \"WindowSeconds\": 20}\n---\n{}"),
              ElementsAre(HasSubstr("2:1: ")));
  EXPECT_THAT(ProblemsOf("[10, 20]"), ElementsAre("1:1: not a JSON object"));
  EXPECT_THAT(ProblemsOf("10"), ElementsAre("1:1: not a JSON object"));
  EXPECT_THAT(ProblemsOf("null"), ElementsAre("1:1: not a JSON object"));
  EXPECT_THAT(ProblemsOf("{\"Limit\": 10, \"WindowSeconds\": 20}" + std::string(70'000, ' ')),
              ElementsAre("1:1: longer than 65536 bytes"));
}

TEST(KeyLimit, NamesTheWordThatIsWrong) {
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10})"), ElementsAre("1:1: neither WindowSeconds nor Window"));
  EXPECT_THAT(ProblemsOf(R"({"WindowSeconds": 20})"), ElementsAre("1:1: no Limit"));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 20, "Window": "20s"})"),
              ElementsAre("1:46: both WindowSeconds and Window"));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "Limit": 11, "WindowSeconds": 20})"),
              ElementsAre("1:15: Limit is there twice"));
  EXPECT_THAT(ProblemsOf(R"({"Limit": -1, "WindowSeconds": 0.5})"),
              ElementsAre("1:11: Limit is not a whole number from 0 on",
                          "1:32: WindowSeconds is not a whole number from 0 on"));
  for (const std::string_view number : {"1e309", "10.0", "\"10\"", "null", "[]", "{}", "true",
                                        "9223372036854775808", "010", "0x10", "1_0", "+10", "-0"}) {
    EXPECT_THAT(ProblemsOf(fmt::format(R"({{"Limit": {}, "WindowSeconds": 20}})", number)),
                ElementsAre("1:11: Limit is not a whole number from 0 on"))
        << number;
  }
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 20, "Algorithm": "token"})"),
              ElementsAre("1:49: invalid Algorithm 'token'"));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 20, "Burst": 5})"),
              ElementsAre(HasSubstr("burst has no meaning for fixed_window")));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 0})"), ElementsAre(HasSubstr("1:32: ")));
  EXPECT_THAT(ProblemsOf(R"({"Limit": 10, "WindowSeconds": 9000000000000})"),
              ElementsAre("1:32: a window lasts at most 36 years"));
  EXPECT_THAT(
      ProblemsOf(R"({"Limits": [], "Limit": 1})"),
      ElementsAre("1:12: Limits is not a list of 1 to 16 limits", "1:25: both Limits and Limit"));
  EXPECT_THAT(ProblemsOf(R"({"Limits": [{"Limit": 1, "WindowSeconds": 1, "Name": "x"}, 7]})"),
              ElementsAre("1:54: Name is not a word of one limit",
                          "1:60: an item of Limits is not an object"));
}

TEST(KeyLimit, HelpsWithAMisspeltWord) {
  const LoadResult loaded = Load(R"({"Limit": 10, "WindowSecond": 20})");
  ASSERT_FALSE(loaded.problems.empty());
  EXPECT_EQ(loaded.problems[1].message, "unknown word 'WindowSecond'");
  EXPECT_EQ(loaded.problems[1].hint, "did you mean 'WindowSeconds'?");
  const LoadResult algorithm =
      Load(R"({"Limit": 10, "WindowSeconds": 20, "Algorithm": "concurency"})");
  ASSERT_EQ(algorithm.problems.size(), 1u);
  EXPECT_EQ(algorithm.problems[0].hint, "did you mean 'concurrency'?");
}

TEST(KeyLimit, JoinsTheDefaultDomainOfAFile) {
  const std::vector<RuleFile> files = {
      {"rules.yaml",
       "domain: default\ndescriptors: [{key: api_key, value: k1, rate_limit: {unit: day, "
       "requests_per_unit: 1}}]"},
      {"/limits/k2", R"({"Limit": 10, "WindowSeconds": 20})", "k2"}};
  EXPECT_EQ(LoadRules(files).rules->rules().size(), 2u);
}

TEST(KeyLimit, TwoRulesForOneKeyAreRefused) {
  const std::string json = R"({"Limit": 10, "WindowSeconds": 20})";
  const LoadResult loaded =
      LoadRules(std::vector<RuleFile>{{"/limits/k", json, "k"}, {"/limits/%6B", json, "k"}});
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(PlaceAndMessage(loaded.problems[0]),
            "/limits/%6B:1:1: the key 'k' has another rule already");
  EXPECT_EQ(loaded.problems[0].hint, "it is in /limits/k:1; keep one of them");
}

TEST(KeyLimit, ThePageNamesEveryWordAndItsExamplesLoad) {
  std::ifstream file(SourceDir() / "docs/reference/key-limits.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view word : kKeyWords)
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` |", word)));
  constexpr std::string_view kFence = "```json\n";
  size_t examples = 0;
  for (size_t at = page.find(kFence); at != std::string::npos; at = page.find(kFence, at)) {
    at += kFence.size();
    EXPECT_THAT(ProblemsOf(page.substr(at, page.find("```", at) - at)), IsEmpty());
    ++examples;
  }
  EXPECT_EQ(examples, 4u);
}

}  // namespace key_limit_test
}  // namespace headgate::rule::read
