// The meaning of valid rule files. load_problems_test.cc tests the invalid ones.
#include "headgate/rule/read/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headgate::rule::read {
namespace load_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using ::testing::ElementsAre;

LoadResult Load(std::string_view text, LoadOptions options = {}) {
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = std::string(text)}};
  LoadResult result = LoadRules(files, options);
  EXPECT_EQ(Describe(result.problems), "");
  return result;
}

// The only rule of a file with one descriptor; `descriptor` is the rest of its mapping.
Rule OnlyRule(std::string_view descriptor) {
  const LoadResult result =
      Load(fmt::format("domain: d\ndescriptors:\n- {{key: k, {}}}\n", descriptor));
  if (!result.ok() || result.rules->rules().size() != 1) {
    ADD_FAILURE() << descriptor;
    return {};
  }
  return result.rules->rules()[0];
}

LimitSpec SpecOf(std::string_view words) {
  const Rule rule = OnlyRule(fmt::format("rate_limit: {{{}}}", words));
  EXPECT_EQ(rule.limits.size(), 1u);
  return rule.limits.empty() ? LimitSpec{} : rule.limits[0].limit.spec();
}

std::string Find(const LoadResult& result, std::vector<Entry> entries,
                 std::string_view domain = "d") {
  Match match;
  if (!result.rules->Find(domain, entries, match)) return "(no domain)";
  return match.rule == nullptr ? "(no rule)" : std::string(match.rule->label());
}

bool AllOrNothing(const LoadResult& result, std::string_view domain) {
  Match match;
  EXPECT_TRUE(result.rules->Find(domain, {}, match));
  return match.all_or_nothing;
}

TEST(LoadRules, TakesHowAnswersDescribeARule) {
  const Rule plain = OnlyRule("rate_limit: {unit: day, requests_per_unit: 1}");
  EXPECT_EQ(plain.rate_limit_fields, std::nullopt);
  EXPECT_EQ(plain.quota_unit, base::QuotaUnit::kRequests);
  EXPECT_EQ(plain.refusal, nullptr);
  const Rule rule = OnlyRule(
      "rate_limit: {unit: day, requests_per_unit: 1}, rate_limit_fields: anthropic, quota_unit: "
      "output-tokens, refusal: {content_type: text/html, body: '<p>${rule}'}");
  EXPECT_EQ(rule.rate_limit_fields, base::RateLimitDialect::kAnthropic);
  EXPECT_EQ(rule.quota_unit, base::QuotaUnit::kOutputTokens);
  ASSERT_NE(rule.refusal, nullptr);
  EXPECT_EQ(*rule.refusal, *Refusal::Make("text/html", "<p>${rule}"));
  // These words say nothing about the limit itself, so it stays a limit of Envoy's kind.
  EXPECT_EQ(rule.limits[0].limit.spec(), plain.limits[0].limit.spec());
}

TEST(LoadRules, TakesEnvoysWordsAsEnvoyMeansThem) {
  const auto envoy = [](uint64_t requests, base::Duration period) {
    return LimitSpec{.algorithm = Algorithm::kFixedWindow,
                     .requests = requests,
                     .period = period,
                     .count_denied = true};
  };
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 5"), envoy(5, 1s));
  EXPECT_EQ(SpecOf("unit: Minute, requests_per_unit: 5"), envoy(5, 60s));
  EXPECT_EQ(SpecOf("unit: HOUR, requests_per_unit: 5"), envoy(5, 1h));
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 5"), envoy(5, 24h));
  EXPECT_EQ(SpecOf("unit: week, requests_per_unit: 5"), envoy(5, 604800s));
  EXPECT_EQ(SpecOf("unit: month, requests_per_unit: 5"), envoy(5, 30 * 24h));
  EXPECT_EQ(SpecOf("unit: year, requests_per_unit: 5"), envoy(5, 365 * 24h));
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 4294967295").requests, 4294967295u);
}

TEST(LoadRules, DeniesEverythingWithoutRequestsAndWarns) {
  const LoadResult result = Load("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day}\n");
  EXPECT_TRUE(result.rules->rules()[0].limits[0].limit.denies_all());
  EXPECT_EQ(Describe(result.warnings),
            "f.yaml:4:15: no requests_per_unit: every request is denied\n"
            "  hint: add requests_per_unit: N; write requests_per_unit: 0 if you mean to deny "
            "every request\n");
  const LoadResult meant =
      Load("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 0}\n");
  EXPECT_TRUE(meant.rules->rules()[0].limits[0].limit.denies_all());
  EXPECT_THAT(meant.warnings, ::testing::IsEmpty());
}

TEST(LoadRules, ReadsNumbersAsYaml11) {
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 010").requests, 8u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 0x10").requests, 16u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 0b101").requests, 5u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 0o17").requests, 15u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: 1_000").requests, 1000u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: +7").requests, 7u);
  EXPECT_EQ(SpecOf("unit: day, requests_per_unit: !!int '7'").requests, 7u);
}

TEST(LoadRules, KeepsTextsAsTheyWereWritten) {
  const LoadResult result = Load(
      "domain: 12\ndescriptors:\n"
      "- {key: a, value: 010, rate_limit: &l {unit: day, requests_per_unit: 1}}\n"
      "- {key: a, value: yes, rate_limit: *l}\n"
      "- {key: a, value: true, rate_limit: *l}\n"
      "- {key: 1_000, value: 2026-11-21, rate_limit: *l}\n"
      "- {key: b, value: null, rate_limit: *l}\n"
      "- {key: c, value: 'null', rate_limit: *l}\n");
  EXPECT_EQ(Find(result, {{"a", "010"}}, "12"), "a_010");
  EXPECT_EQ(Find(result, {{"a", "8"}}, "12"), "(no rule)");
  EXPECT_EQ(Find(result, {{"a", "yes"}}, "12"), "a_yes");
  EXPECT_EQ(Find(result, {{"a", "true"}}, "12"), "a_true");
  EXPECT_EQ(Find(result, {{"1_000", "2026-11-21"}}, "12"), "1_000_2026-11-21");
  EXPECT_EQ(Find(result, {{"b", "anything"}}, "12"), "b");
  EXPECT_EQ(Find(result, {{"c", "null"}}, "12"), "c_null");
}

TEST(LoadRules, TakesOurWordsAsOurs) {
  EXPECT_EQ(SpecOf("period: 20s, requests_per_unit: 10"),
            (LimitSpec{.requests = 10, .period = 20s}));
  EXPECT_EQ(SpecOf("unit: minute, burst: 5, requests_per_unit: 10"),
            (LimitSpec{.requests = 10, .period = 60s, .burst = 5}));
  EXPECT_EQ(SpecOf("period: Minute, algorithm: gcra, requests_per_unit: 10"),
            (LimitSpec{.requests = 10, .period = 60s}));
  EXPECT_EQ(SpecOf("unit: hour, algorithm: sliding_window_log, requests_per_unit: 10"),
            (LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 1h}));
  EXPECT_EQ(SpecOf("unit: hour, algorithm: sliding_window_counter, count_denied: true, "
                   "requests_per_unit: 10"),
            (LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter,
                       .requests = 10,
                       .period = 1h,
                       .count_denied = true}));
  EXPECT_EQ(SpecOf("unit: hour, overdraw: true, requests_per_unit: 10"),
            (LimitSpec{.requests = 10, .period = 1h, .overdraw = true}));
  LimitSpec blocks{.requests = 10, .period = 1h};
  blocks.block.Add(algorithm::BlockLengths::Seconds(600));
  EXPECT_EQ(SpecOf("unit: hour, block: 10m, requests_per_unit: 10"), blocks);
  blocks.block.Add(algorithm::BlockLengths::Seconds(3600));
  EXPECT_EQ(SpecOf("unit: hour, block: [10m, 1h], requests_per_unit: 10"), blocks);
  EXPECT_EQ(SpecOf("unit: hour, algorithm: fixed_window, align: first_hit, requests_per_unit: 10"),
            (LimitSpec{.algorithm = Algorithm::kFixedWindow,
                       .requests = 10,
                       .period = 1h,
                       .align = Align::kFirstHit}));
  EXPECT_EQ(SpecOf("unit: hour, algorithm: leaky_bucket, requests_per_unit: 10"),
            (LimitSpec{.algorithm = Algorithm::kLeakyBucket, .requests = 10, .period = 1h}));
}

TEST(LoadRules, TakesAFixedWindowOfOursNotToCountWhatItDenied) {
  EXPECT_FALSE(SpecOf("unit: hour, algorithm: fixed_window, requests_per_unit: 10").count_denied);
}

// Envoy's weeks begin with the epoch, on Thursday.
TEST(LoadRules, BeginsWeeksOfFixedWindowsOnMonday) {
  EXPECT_EQ(SpecOf("period: week, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kCalendarWeek);
  EXPECT_EQ(SpecOf("unit: week, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kEpoch);
  EXPECT_EQ(SpecOf("unit: week, requests_per_unit: 1").align, Align::kEpoch);
  EXPECT_EQ(SpecOf("period: 7d, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kEpoch);
  EXPECT_EQ(
      SpecOf("period: week, align: epoch, algorithm: fixed_window, requests_per_unit: 1").align,
      Align::kEpoch);
  const LoadResult bucket = Load(
      "domain: d\ndescriptors:\n- key: k\n  rate_limit: {period: week, requests_per_unit: 5}\n");
  EXPECT_EQ(bucket.rules->rules()[0].limits[0].limit.spec(),
            (LimitSpec{.requests = 5, .period = 7 * 24h}));
  EXPECT_EQ(Describe(bucket.warnings), "") << "seven days are a week everywhere";
}

TEST(LoadRules, EndsMonthsAndYearsOfFixedWindowsWithTheCalendar) {
  EXPECT_EQ(SpecOf("period: month, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kCalendarMonth);
  EXPECT_EQ(SpecOf("period: year, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kCalendarYear);
  EXPECT_EQ(SpecOf("unit: month, algorithm: fixed_window, requests_per_unit: 1").align,
            Align::kEpoch);
  const LimitSpec first_hit =
      SpecOf("period: month, algorithm: fixed_window, align: first_hit, requests_per_unit: 1");
  EXPECT_EQ(first_hit.align, Align::kFirstHit);
  EXPECT_EQ(first_hit.period, 30 * 24h);
}

TEST(LoadRules, EndsPeriodsOfFixedWindowsWithTheCalendarOfATimeZone) {
  const auto berlin = base::TimeZone::Load("Europe/Berlin").value();
  const LimitSpec day =
      SpecOf("period: day, algorithm: fixed_window, requests_per_unit: 1, timezone: Europe/Berlin");
  EXPECT_EQ(day.align, Align::kCalendarDay);
  EXPECT_EQ(day.zone, berlin);
  const LimitSpec month = SpecOf(
      "timezone: Europe/Berlin, period: month, algorithm: fixed_window, requests_per_unit: 1");
  EXPECT_EQ(month.align, Align::kCalendarMonth);
  EXPECT_EQ(month.zone, berlin);
  EXPECT_EQ(SpecOf("period: day, algorithm: fixed_window, requests_per_unit: 1, timezone: UTC"),
            SpecOf("period: day, algorithm: fixed_window, requests_per_unit: 1"))
      << "they have the same buckets";
}

TEST(LoadRules, WarnsWhereAMonthIsNotTheCalendars) {
  const LoadResult result = Load(
      "domain: d\ndescriptors:\n- key: k\n  rate_limit: {period: month, requests_per_unit: 5}\n");
  EXPECT_EQ(result.rules->rules()[0].limits[0].limit.spec(),
            (LimitSpec{.requests = 5, .period = 30 * 24h}));
  EXPECT_EQ(Describe(result.warnings),
            "f.yaml:4:24: a month is 30 days here\n"
            "  hint: with algorithm: fixed_window it ends with the calendar's, in UTC\n");
}

TEST(LoadRules, MakesAQueueOfALeakyBucket) {
  const LimitSpec queue{
      .algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 5};
  EXPECT_EQ(
      SpecOf("unit: second, requests_per_unit: 10, burst: 5, algorithm: leaky_bucket, queue: true"),
      queue);
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 10, burst: 5, queue: true"), queue);
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 10, burst: 0, queue: true").burst, 0u);
}

TEST(LoadRules, LetsNobodyWaitLongerThanMaxDelay) {
  // One request leaves every 100 ms, so 19 can wait within 1.99 s.
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 10, queue: true, max_delay: 1.99s").burst,
            19u);
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 10, queue: true, max_delay: 2s").burst, 20u);
  EXPECT_EQ(SpecOf("unit: second, requests_per_unit: 10, queue: true, max_delay: 99ms").burst, 0u);
  EXPECT_EQ(
      SpecOf("unit: second, requests_per_unit: 10, queue: true, max_delay: 2s, burst: 7").burst,
      7u);
  EXPECT_EQ(
      SpecOf("unit: second, requests_per_unit: 10, queue: true, max_delay: 2s, burst: 70").burst,
      20u);
}

TEST(LoadRules, ReportsEnvoysUnitWhereThePeriodIsOne) {
  const auto unit = [](std::string_view words) {
    return OnlyRule(fmt::format("rate_limit: {{{}, requests_per_unit: 1}}", words)).limits[0].unit;
  };
  EXPECT_EQ(unit("unit: week"), Unit::kWeek);
  EXPECT_EQ(unit("period: 60s"), Unit::kMinute);
  EXPECT_EQ(unit("period: 20s"), std::nullopt);
  EXPECT_EQ(unit("period: month, algorithm: fixed_window"), Unit::kMonth);
  EXPECT_EQ(unit("period: year, algorithm: fixed_window"), Unit::kYear);
}

TEST(LoadRules, GivesOneNodeSeveralLimits) {
  const Rule rule = OnlyRule(
      "rate_limits: [{unit: second, requests_per_unit: 10, name: both}, {unit: hour, "
      "requests_per_unit: 1000, burst: "
      "50}]");
  EXPECT_EQ(rule.name, "both");
  ASSERT_EQ(rule.limits.size(), 2u);
  // Each limit uses Envoy's format or Headgate's own, depending on its words.
  EXPECT_EQ(rule.limits[0].limit.spec(), (LimitSpec{.requests = 1000, .period = 1h, .burst = 50}));
  EXPECT_EQ(rule.limits[1].limit.spec(), (LimitSpec{.algorithm = Algorithm::kFixedWindow,
                                                    .requests = 10,
                                                    .period = 1s,
                                                    .count_denied = true}));
}

TEST(LoadRules, OrdersSeveralLimitsByTheirPeriods) {
  const Rule rule = OnlyRule(
      "rate_limits: [{period: 7d, requests_per_unit: 1}, {period: 1s, requests_per_unit: 2}, "
      "{period: month, requests_per_unit: 3, algorithm: fixed_window}, "
      "{period: 1s, requests_per_unit: 4}, {period: 1d, requests_per_unit: 5}]");
  std::vector<uint64_t> requests;
  for (const RuleLimit& limit : rule.limits) requests.push_back(limit.limit.spec().requests);
  EXPECT_EQ(requests, (std::vector<uint64_t>{3, 1, 5, 2, 4})) << "equal ones as they are written";
}

TEST(LoadRules, ReadsEverythingBesideTheLimit) {
  const Rule rule = OnlyRule(
      "value: v, shadow_mode: true, quota_mode: yes, detailed_metric: on, value_to_metric: y, "
      "rate_limit: {unlimited: true, name: free, replaces: [{name: a}, {name: b}]}");
  EXPECT_EQ(rule.domain, "d");
  EXPECT_EQ(rule.name, "free");
  EXPECT_EQ(rule.path, "k_v");
  EXPECT_EQ(rule.label(), "free");
  EXPECT_TRUE(rule.unlimited);
  EXPECT_THAT(rule.limits, ::testing::IsEmpty());
  EXPECT_TRUE(rule.shadow_mode);
  EXPECT_TRUE(rule.quota_mode);
  EXPECT_TRUE(rule.detailed_metric);
  EXPECT_TRUE(rule.value_to_metric);
  EXPECT_THAT(rule.replaces, ElementsAre("a", "b"));
}

TEST(LoadRules, AcceptsUnlimitedWithAUnitThatIsNone) {
  EXPECT_TRUE(OnlyRule("rate_limit: {unlimited: true, unit: none}").unlimited);
}

TEST(LoadRules, KeepsWhatConcernsSharedStores) {
  const Rule rule = OnlyRule(
      "rate_limit: {unit: day, requests_per_unit: 1, sharing: leased, on_store_failure: deny, "
      "fallback_share: 0.25}");
  EXPECT_EQ(rule.sharing, Sharing::kLeased);
  EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kDeny);
  EXPECT_EQ(rule.fallback_share_ppm, 250'000u);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, strict: true}").sharing,
            Sharing::kStrict);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, strict: lock}").sharing,
            Sharing::kLocked);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, sharing: strict, strict: lock, "
                     "on_store_failure: deny}")
                .sharing,
            Sharing::kLocked);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, strict: false}").sharing,
            std::nullopt);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, fallback_share: 1}")
                .fallback_share_ppm,
            1'000'000u);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1, fallback_share: 0.000001}")
                .fallback_share_ppm,
            1u);
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1}").sharing, std::nullopt);
}

TEST(LoadRules, TurnsMetadataIntoJson) {
  const Rule rule = OnlyRule(
      "rate_limit: {unit: day, requests_per_unit: 1}, metadata: {text: \"a\\\"b\\n\", octal: 010, "
      "yes: no, nothing: ~, "
      "half: .5, list: [1, {x: y, z: w}], 7: seven, at: 2026-11-21, twice: 1, twice: 2, big: "
      "18446744073709551615}");
  EXPECT_EQ(nlohmann::json::parse(rule.metadata_json),
            nlohmann::json::parse(
                R"({"text": "a\"b\n", "octal": 8, "yes": false, "nothing": null, "half": 0.5,
                                      "list": [1, {"x": true, "z": "w"}], "7": "seven", "at": "2026-11-21", "twice": 2,
                                      "big": 18446744073709551615})"));
  EXPECT_EQ(OnlyRule("rate_limit: {unit: day, requests_per_unit: 1}, metadata: ~").metadata_json,
            "");
}

TEST(LoadRules, RefusesMetadataBeyondItsBound) {
  const std::string just_fits = fmt::format("metadata: {{k: '{}'}}", std::string(65'536 - 8, 'x'));
  EXPECT_EQ(
      OnlyRule(just_fits + ", rate_limit: {unit: day, requests_per_unit: 1}").metadata_json.size(),
      65'536u);
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = fmt::format("domain: d\ndescriptors:\n- key: k\n  metadata: {{k: '{}'}}\n",
                           std::string(65'536 - 7, 'x'))}};
  EXPECT_EQ(Describe(LoadRules(files).problems),
            "f.yaml:4:13: error parsing metadata: more than 65536 bytes as JSON\n"
            "  hint: metadata must be convertible to a JSON object\n");
}

TEST(LoadRules, WarnsOfEnvoysWordsWhereTheyDoNothing) {
  const LoadResult result = Load(
      "domain: d\ndescriptors:\n- key: k\n  rate_limit:\n    unit: day\n    requests_per_unit: 1\n "
      "   shadow_mode: "
      "true\n");
  EXPECT_FALSE(result.rules->rules()[0].shadow_mode);
  EXPECT_EQ(Describe(result.warnings),
            "f.yaml:7:5: 'shadow_mode' does nothing here\n"
            "  hint: 'shadow_mode' belongs in a descriptor, next to its key\n");
}

TEST(LoadRules, MakesNoRuleWithoutALimit) {
  const LoadResult result = Load(
      "domain: d\ndescriptors:\n- key: a\n  shadow_mode: true\n- key: b\n  rate_limit: ~\n  "
      "descriptors:\n  - key: c\n"
      "    rate_limit: {unit: day, requests_per_unit: 1}\n");
  ASSERT_EQ(result.rules->rules().size(), 1u);
  EXPECT_EQ(result.rules->rules()[0].path, "b.c");
  EXPECT_EQ(Find(result, {{"b", "x"}, {"c", "y"}}), "b.c");
  EXPECT_EQ(Find(result, {{"b", "x"}}), "(no rule)");
  EXPECT_EQ(Find(result, {{"a", "x"}}), "(no rule)");
}

TEST(LoadRules, TakesTheLastOfADoubledWordAndMergesADoubledLimit) {
  const Rule rule = OnlyRule(
      "value: a, value: b, rate_limit: {unit: day, requests_per_unit: 5}, rate_limit: "
      "{requests_per_unit: 7, name: n}");
  EXPECT_EQ(rule.path, "k_b");
  EXPECT_EQ(rule.name, "n");
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 7u);
  EXPECT_EQ(rule.limits[0].limit.spec().period, 24h);
}

TEST(LoadRules, ForgetsALimitThatIsDoubledByNothing) {
  const LoadResult result =
      Load("domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: x}, rate_limit: ~}\n");
  EXPECT_THAT(result.rules->rules(), ::testing::IsEmpty());
}

TEST(LoadRules, ExpandsAliasesAndMergeKeys) {
  const LoadResult result = Load(
      "domain: d\ndescriptors:\n"
      "- &base {key: a, rate_limit: &limit {unit: day, requests_per_unit: 1}}\n"
      "- {key: b, rate_limit: *limit}\n"
      "- {<<: *base, key: c}\n"
      "- {key: d, rate_limit: {<<: [{unit: hour}, *limit]}}\n");
  ASSERT_EQ(result.rules->rules().size(), 4u);
  EXPECT_EQ(result.rules->rules()[2].path, "c");
  EXPECT_EQ(result.rules->rules()[2].limits[0].limit.spec().period, 24h);
  EXPECT_EQ(result.rules->rules()[3].limits[0].limit.spec().period, 1h);
  EXPECT_EQ(result.rules->rules()[3].limits[0].limit.spec().requests, 1u);
}

TEST(LoadRules, SharesTheThresholdOfAPattern) {
  const LoadResult result = Load(
      "domain: d\ndescriptors:\n- key: k\n  value: foo*\n  share_threshold: true\n  descriptors:\n "
      " - key: j\n"
      "    value_to_metric: true\n    rate_limit: {unit: day, requests_per_unit: 1}\n");
  Match match;
  ASSERT_TRUE(result.rules->Find("d", std::vector<Entry>{{"k", "foobar"}, {"j", "x"}}, match));
  ASSERT_NE(match.rule, nullptr);
  EXPECT_EQ(*match.steps[0].shared_pattern, "k_foo*");
  EXPECT_EQ(match.steps[1].shared_pattern, nullptr);
  EXPECT_FALSE(match.steps[0].value_in_metric);
  EXPECT_TRUE(match.steps[1].value_in_metric);
}

TEST(LoadRules, KeepsARulesIdentityWhileItsLimitChanges) {
  const Rule before = OnlyRule("value: v, rate_limit: {unit: day, requests_per_unit: 1}");
  const Rule after = OnlyRule("value: v, rate_limit: {unit: hour, requests_per_unit: 2, name: n}");
  EXPECT_EQ(before.identity, after.identity);
  EXPECT_NE(before.identity,
            OnlyRule("value: w, rate_limit: {unit: day, requests_per_unit: 1}").identity);
}

TEST(LoadRules, LoadsSeveralFilesOfDifferentDomains) {
  const std::vector<RuleFile> files{
      {.name = "a",
       .text = "domain: a\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]"},
      {.name = "b", .text = "domain: b\nall_or_nothing: true\n"}};
  const LoadResult result = LoadRules(files);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(Find(result, {{"k", "v"}}, "a"), "k");
  EXPECT_EQ(Find(result, {{"k", "v"}}, "b"), "(no rule)");
  EXPECT_EQ(Find(result, {{"k", "v"}}, "c"), "(no domain)");
  EXPECT_FALSE(AllOrNothing(result, "a"));
  EXPECT_TRUE(AllOrNothing(result, "b"));
}

TEST(LoadRules, MergesDomainsInTheOrderOfTheFilesWhereAsked) {
  const std::vector<RuleFile> files{
      {.name = "a",
       .text =
           "domain: d\ndescriptors: [{key: k, value: 'a*', rate_limit: {unit: day, name: first}}]"},
      {.name = "b",
       .text = "domain: d\nall_or_nothing: true\ndescriptors: [{key: k, value: 'ab*', rate_limit: "
               "{unit: day, name: "
               "second}}, {key: j, rate_limit: {unit: day}}]"}};
  const LoadResult merged = LoadRules(files, {.merge_domains = MergeDomains::kYes});
  ASSERT_TRUE(merged.ok()) << Describe(merged.problems);
  EXPECT_EQ(Find(merged, {{"k", "abc"}}), "first");
  EXPECT_EQ(Find(merged, {{"j", "x"}}), "j");
  EXPECT_TRUE(AllOrNothing(merged, "d"));
  EXPECT_FALSE(LoadRules(files).ok());

  std::vector<RuleFile> doubled{files[0], files[0]};
  doubled[1].name = "b";
  EXPECT_EQ(Describe(LoadRules(doubled, {.merge_domains = MergeDomains::kYes}).problems),
            "b:2:21: duplicate descriptor composite key 'd.k_a*'\n"
            "  hint: it is in a:2:21 too; put both into one descriptor\n");
}

TEST(LoadRules, LoadsNothingFromNothing) {
  const LoadResult result = LoadRules({});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result.rules->rules(), ::testing::IsEmpty());
  EXPECT_EQ(Find(result, {{"k", "v"}}), "(no domain)");
}

}  // namespace load_test
}  // namespace headgate::rule::read
