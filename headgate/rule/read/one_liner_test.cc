#include "headgate/rule/read/one_liner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/rule/read/load.h"

namespace headgate::rule::read {
namespace one_liner_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

OneLiner Parse(std::string_view text) {
  ParsedOneLiner parsed = ParseOneLiner(text);
  EXPECT_FALSE(parsed.error.has_value()) << text << ": " << parsed.error->message;
  return std::move(parsed.rule);
}

LimitSpec SpecOf(std::string_view limit) {
  return Parse(fmt::format("k: {}", limit)).limit.limit.spec();
}

// The steps as "key=value,key", for comparison.
std::string StepsOf(std::string_view text) {
  std::string out;
  for (const auto& [key, value] : Parse(text).steps) out += fmt::format("[{}|{}]", key, value);
  return out;
}

TEST(OneLiner, TakesTokenBucketWhereNoAlgorithmIsNamed) {
  EXPECT_EQ(SpecOf("100/minute"), (LimitSpec{.requests = 100, .period = 60s}));
  EXPECT_EQ(SpecOf("100/minute burst 20"),
            (LimitSpec{.requests = 100, .period = 60s, .burst = 20}));
}

TEST(OneLiner, ReadsItsWordsInAnyOrder) {
  const LimitSpec spec{.algorithm = Algorithm::kFixedWindow,
                       .requests = 10,
                       .period = 20s,
                       .align = Align::kFirstHit};
  EXPECT_EQ(SpecOf("10/20s fixed_window first_hit"), spec);
  EXPECT_EQ(SpecOf("first_hit 10/20s fixed_window"), spec);
  EXPECT_EQ(SpecOf("fixed_window   first_hit\t10/20s "), spec);
}

TEST(OneLiner, ReadsUnitsLettersAndDurations) {
  EXPECT_EQ(SpecOf("1/second").period, 1s);
  EXPECT_EQ(SpecOf("1/Week").period, 604800s);
  EXPECT_EQ(SpecOf("1/s").period, 1s);
  EXPECT_EQ(SpecOf("1/h").period, 1h);
  EXPECT_EQ(SpecOf("1/1h30m").period, 5400s);
  EXPECT_EQ(SpecOf("1/month").period, 30 * 24h);
  EXPECT_EQ(SpecOf("1/month fixed_window").align, Align::kCalendarMonth);
  EXPECT_EQ(SpecOf("1/year fixed_window").align, Align::kCalendarYear);
  EXPECT_EQ(SpecOf("1/week fixed_window").align, Align::kCalendarWeek);
}

TEST(OneLiner, MakesAQueueOfALeakyBucket) {
  const LimitSpec queue{
      .algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 5};
  EXPECT_EQ(SpecOf("10/second burst 5 queue"), queue);
  EXPECT_EQ(SpecOf("10/second burst 5 leaky_bucket queue"), queue);
}

TEST(OneLiner, DeniesEverythingAtZeroRequests) {
  EXPECT_TRUE(Parse("k: 0/day").limit.limit.denies_all());
}

TEST(OneLiner, ReadsSeveralKeysWithAndWithoutValues) {
  EXPECT_EQ(StepsOf("api_key: 1/day"), "[api_key|]");
  EXPECT_EQ(StepsOf("api_key=gold: 1/day"), "[api_key|gold]");
  EXPECT_EQ(StepsOf("api_key=gold,path: 1/day"), "[api_key|gold][path|]");
  EXPECT_EQ(StepsOf(" api_key = gold , path :1/day"), "[api_key|gold][path|]");
  EXPECT_EQ(StepsOf("path=/a=b*: 1/day"), "[path|/a=b*]");
}

TEST(OneLiner, ReadsQuotedTexts) {
  EXPECT_EQ(StepsOf(R"(k="a, b: c": 1/day)"), "[k|a, b: c]");
  EXPECT_EQ(StepsOf(R"(k="say \"hi\" \\": 1/day)"), R"([k|say "hi" \])");
  EXPECT_EQ(StepsOf(R"("my key"="v": 1/day)"), "[my key|v]");
}

constexpr std::string_view kForm =
    "write it as key[=value][,key[=value]…]: REQUESTS/PERIOD [burst B] [ALGORITHM] [first_hit] "
    "[queue], such as "
    "'api_key: "
    "100/minute burst 20'";
constexpr std::string_view kQuotes =
    "put a key or value that contains one of ,:\" or a space in double quotes";

struct Bad {
  std::string_view text;
  size_t column;
  std::string_view message;
  std::string_view hint;
};

TEST(OneLiner, SaysWhatIsWrongAndWhere) {
  for (
      const Bad& bad : std::vector<Bad>{
          {"", 1, "a key is missing", kForm},
          {": 1/day", 1, "a key is missing", kForm},
          {"a,: 1/day", 3, "a key is missing", kForm},
          {"=v: 1/day", 1, "a key is missing", kForm},
          {"a=: 1/day", 3, "the value of \"a\" is empty",
           "leave out the '=' for a rule that matches every value"},
          {"a=\"\": 1/day", 3, "the value of \"a\" is empty",
           "leave out the '=' for a rule that matches every value"},
          {"a", 2, "the ':' before the limit is missing", kForm},
          {"api_key 100/minute", 9, "the ':' before the limit is missing", kForm},
          {"a=b c: 1/day", 5, "\"c\" cannot follow here", kQuotes},
          {"a b: 1/day", 3, "\"b\" cannot follow here", kQuotes},
          {"a=b\"c\": 1/day", 4, "\"\\\"\" cannot follow here", kQuotes},
          {"a=\"b: 1/day", 3, "the closing '\"' is missing", "end quoted text with '\"'"},
          {"a=\"\\n\": 1/day", 4, "a '\\' may only come before '\"' or '\\'",
           "write '\\\\' for a '\\'"},
          {"a=\"\\", 4, "a '\\' may only come before '\"' or '\\'", "write '\\\\' for a '\\'"},
          {"a:", 3, "REQUESTS/PERIOD is missing", kForm},
          {"a: burst 5", 11, "REQUESTS/PERIOD is missing", kForm},
          {"a: 1/day 2/hour", 10, "a second REQUESTS/PERIOD",
           "give each limit a rule of its own, or use rate_limits in a file"},
          {"a: ten/day", 4, "\"ten\" is not a number of requests",
           "a whole number, as in 100/minute"},
          {"a: -1/day", 4, "\"-1\" is not a number of requests",
           "a whole number, as in 100/minute"},
          {"a: 9223372036854775808/day", 4, "\"9223372036854775808\" is not a number of requests",
           "a whole number, as in 100/minute"},
          {"a: 1/minite", 6,
           "\"minite\" is not a period: write second, minute, hour, day, week, month, year or a "
           "duration such as 20s",
           "did you mean 'minute'?"},
          {"a: 1/", 6,
           "\"\" is not a period: write second, minute, hour, day, week, month, year or a duration "
           "such as 20s",
           "a period is a unit or a duration, as in 100/minute or 5/20s"},
          {"a: 1/20", 6,
           "\"20\" is not a duration: the unit is missing; use ns, us, ms, s, m, h or d, as in 20s",
           "a period is a unit or a duration, as in 100/minute or 5/20s"},
          {"a: 1/0s", 4, "the period must be longer than 0", kForm},
          {"a: 1/day burst", 15, "\"\" is not a burst", "a whole number, as in burst 20"},
          {"a: 1/day burst x", 16, "\"x\" is not a burst", "a whole number, as in burst 20"},
          {"a: 1/day burst 1 burst 2", 18, "a second burst", "name one"},
          {"a: 1/day burst 0", 4, "burst must be 1 or more (0 is for a queue that holds nobody)",
           kForm},
          {"a: 1/day gcra fixed_window", 15, "a second algorithm", "name one"},
          {"a: 1/day gcar", 10, "unknown word \"gcar\"", "did you mean 'gcra'?"},
          {"a: 1/day please", 10, "unknown word \"please\"", kForm},
          {"a: 1/day first_hit", 4,
           "only fixed_window can be aligned to its first hit or to the calendar, not token_bucket",
           kForm},
          {"a: 1/day fixed_window queue", 4, "queue belongs to leaky_bucket, not fixed_window",
           kForm},
      }) {
    const ParsedOneLiner parsed = ParseOneLiner(bad.text);
    ASSERT_TRUE(parsed.error.has_value()) << bad.text;
    EXPECT_EQ(parsed.error->message, bad.message) << bad.text;
    EXPECT_EQ(parsed.error->column, bad.column) << bad.text;
    EXPECT_EQ(parsed.error->hint, bad.hint) << bad.text;
  }
}

TEST(OneLiner, IsBounded) {
  EXPECT_EQ(ParseOneLiner(std::string(16'385, 'a')).error->message, "longer than 16384 bytes");
  const std::string long_key(4'097, 'a');
  EXPECT_EQ(ParseOneLiner(fmt::format("{}: 1/day", long_key)).error->message,
            "a key or value is longer than 4096 bytes");
  std::string deep = "a";
  for (size_t i = 0; i < kEntriesMax; ++i) deep += ",a";
  EXPECT_EQ(ParseOneLiner(fmt::format("{}: 1/day", deep)).error->message, "more than 32 keys");
}

std::string Find(const LoadResult& result, std::vector<Entry> entries) {
  Match match;
  if (!result.rules->Find("default", entries, match)) return "(no domain)";
  return match.rule == nullptr ? "(no rule)" : std::string(match.rule->label());
}

TEST(LoadRules, PutsOneLinersAndFilesIntoTheDomainDefault) {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = "domain: default\ndescriptors:\n- key: a\n  descriptors:\n  - key: b\n    "
               "rate_limit: {unit: day}\n"}};
  const LoadResult result =
      LoadRules(files, {.one_liners = {"a: 10/day", "a,c: 5/day", "a,c=x*: 1/day"}});
  ASSERT_TRUE(result.ok()) << Describe(result.problems);
  EXPECT_EQ(Find(result, {{"a", "1"}}), "a");
  EXPECT_EQ(Find(result, {{"a", "1"}, {"b", "2"}}), "a.b");
  EXPECT_EQ(Find(result, {{"a", "1"}, {"c", "2"}}), "a.c");
  EXPECT_EQ(Find(result, {{"a", "1"}, {"c", "xyz"}}), "a.c_x*");
  EXPECT_EQ(result.rules->rules()[1].domain, "default");
}

TEST(LoadRules, RefusesASecondRuleForTheSameKeys) {
  const LoadResult result = LoadRules({}, {.one_liners = {"a=1: 10/day", "a=1: 5/hour"}});
  EXPECT_EQ(Describe(result.problems),
            "rule \"a=1: 5/hour\":1:1: duplicate descriptor composite key 'default.a_1'\n"
            "  hint: another rule has these keys; write several limits of one rule in a file, "
            "under rate_limits\n");
}

TEST(LoadRules, NamesTheOneLinerThatIsWrong) {
  const LoadResult result = LoadRules({}, {.one_liners = {"a: 10/day", "b: 10/dya"}});
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(
      Describe(result.problems),
      "rule \"b: 10/dya\":1:7: \"dya\" is not a period: write second, minute, hour, day, week, "
      "month, year or a duration "
      "such as 20s\n"
      "  hint: a period is a unit or a duration, as in 100/minute or 5/20s\n");
}

TEST(LoadRules, WarnsOfAOneLinersMonthThatIsNotTheCalendars) {
  EXPECT_EQ(Describe(LoadRules({}, {.one_liners = {"a: 10/month"}}).warnings),
            "rule \"a: 10/month\":1:1: a month is 30 days here\n"
            "  hint: with fixed_window it ends with the calendar's, in UTC\n");
  EXPECT_THAT(LoadRules({}, {.one_liners = {"a: 10/month fixed_window", "b: 10/30d"}}).warnings,
              ::testing::IsEmpty());
}

}  // namespace one_liner_test
}  // namespace headgate::rule::read
