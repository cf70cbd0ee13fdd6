#include "headgate/wire/http_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace headgate::wire {
namespace http_fields_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kPolicy = "RateLimit-Policy";
constexpr std::string_view kRateLimit = "RateLimit";
constexpr std::string_view kRemaining = "X-RateLimit-Remaining";
constexpr std::string_view kReset = "X-RateLimit-Reset";
constexpr std::string_view kRetryAfter = "Retry-After";
// Saturday, 14 November 2023, 22:13:20 UTC and a half.
constexpr base::WallTime kNow = base::WallTime::FromNanos(1'700'000'000'500'000'000);

using Fields = std::vector<std::pair<std::string, std::string>>;

Fields Emit(const RateLimitState& state, RateLimitDialect dialect = RateLimitDialect::kAll) {
  Fields fields;
  std::string scratch;
  EmitRateLimitFields(
      state, dialect, kNow, scratch,
      [&](std::string_view name, std::string_view value) { fields.emplace_back(name, value); });
  return fields;
}

std::string ValueOf(std::string_view field, const RateLimitState& state) {
  for (const auto& [name, value] : Emit(state)) {
    if (name == field) return value;
  }
  return "(absent)";
}

RateLimitState Search() {
  return {.policy = "search",
          .quota = 100,
          .window = 60s,
          .limit = 120,
          .remaining = 15,
          .reset_after = 40s,
          .more_after = 40s,
          .denied = false,
          .retry_after = std::nullopt};
}

TEST(RateLimitFields, SayWhereALimitStands) {
  EXPECT_THAT(
      Emit(Search()),
      ElementsAre(Pair("RateLimit-Policy", R"("search";q=100;w=60)"),
                  Pair("RateLimit", R"("search";r=15;t=40)"), Pair("X-RateLimit-Limit", "120"),
                  Pair("X-RateLimit-Remaining", "15"), Pair("X-RateLimit-Reset", "40")));
}

TEST(RateLimitFields, SayWhenToComeBackWhereDenied) {
  RateLimitState state = Search();
  state.remaining = 0;
  state.denied = true;
  state.retry_after = 20s;
  EXPECT_THAT(Emit(state),
              ElementsAre(Pair("RateLimit-Policy", R"("search";q=100;w=60)"),
                          Pair("RateLimit", R"("search";r=0;t=20)"),
                          Pair("X-RateLimit-Limit", "120"), Pair("X-RateLimit-Remaining", "0"),
                          Pair("X-RateLimit-Reset", "40"), Pair("Retry-After", "20")));
}

TEST(RateLimitFields, RoundSecondsUpSoThatNobodyIsEarly) {
  RateLimitState state = Search();
  state.denied = true;
  const auto retry_after = [&](base::Duration d) {
    state.retry_after = d;
    return ValueOf(kRetryAfter, state);
  };
  EXPECT_EQ(retry_after(0ns), "1");
  EXPECT_EQ(retry_after(1ns), "1");
  EXPECT_EQ(retry_after(1s), "1");
  EXPECT_EQ(retry_after(1s + 1ns), "2");
  EXPECT_EQ(retry_after(base::kDurationMax), "4611686019");
  state.reset_after = 1ns;
  EXPECT_EQ(ValueOf(kReset, state), "1");
  state.reset_after = 0ns;
  EXPECT_EQ(ValueOf(kReset, state), "0");
}

TEST(RateLimitFields, NeverSayRetryWhereNothingHelps) {
  RateLimitState state = Search();
  EXPECT_EQ(ValueOf(kRetryAfter, state), "(absent)");  // not denied
  state.denied = true;
  EXPECT_EQ(ValueOf(kRetryAfter, state), "(absent)");  // never fits
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15;t=40)");
}

TEST(RateLimitFields, NeverOfferMoreThanTheQuota) {
  RateLimitState state = Search();
  state.remaining = 119;  // a burst of 120
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=100;t=40)");
  EXPECT_EQ(ValueOf(kRemaining, state), "119");
}

TEST(RateLimitFields, SayWhenMoreIsAvailableOnlyIfThatIsKnown) {
  RateLimitState state = Search();
  state.more_after = 6s;
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15;t=6)");
  state.more_after = std::nullopt;
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15)");
}

TEST(RateLimitFields, NeverNameAnEmptyWindow) {
  RateLimitState full = Search();
  full.remaining = 100;
  full.reset_after = 0s;
  full.more_after = 0s;
  EXPECT_EQ(ValueOf(kRateLimit, full), R"("search";r=100)");
  EXPECT_EQ(ValueOf(kReset, full), "0");
}

TEST(RateLimitFields, ALimitOfZeroPromisesNoTime) {
  const RateLimitState nothing{
      .policy = "leaked", .window = 60s, .denied = true, .retry_after = std::nullopt};
  EXPECT_THAT(Emit(nothing),
              ElementsAre(Pair("RateLimit-Policy", R"("leaked";q=0;w=60)"),
                          Pair("RateLimit", R"("leaked";r=0)"), Pair("X-RateLimit-Limit", "0"),
                          Pair("X-RateLimit-Remaining", "0")));
}

TEST(RateLimitFields, NameAWindowOnlyInWholeSeconds) {
  RateLimitState state = Search();
  for (const base::Duration window :
       {base::Duration(0s), base::Duration(100ms), base::Duration(1500ms)}) {
    state.window = window;
    EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=100)");
  }
  state.window = 365 * 24h;
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=100;w=31536000)");
}

TEST(RateLimitDialects, EachHasItsFields) {
  using enum RateLimitDialect;
  RateLimitState state = Search();
  state.denied = true;
  state.retry_after = 20s;
  EXPECT_THAT(Emit(state, kDraft),
              ElementsAre(Pair("RateLimit-Policy", R"("search";q=100;w=60)"),
                          Pair("RateLimit", R"("search";r=15;t=20)"), Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kDraft7),
              ElementsAre(Pair("RateLimit-Policy", "100;w=60"),
                          Pair("RateLimit", "limit=100, remaining=15, reset=40"),
                          Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kDraft6),
              ElementsAre(Pair("RateLimit-Policy", "100;w=60"), Pair("RateLimit-Limit", "120"),
                          Pair("RateLimit-Remaining", "15"), Pair("RateLimit-Reset", "40"),
                          Pair("Retry-After", "20")));
  EXPECT_THAT(
      Emit(state, kDraft3),
      ElementsAre(Pair("RateLimit-Limit", "100, 100;w=60"), Pair("RateLimit-Remaining", "15"),
                  Pair("RateLimit-Reset", "40"), Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kGithub),
              ElementsAre(Pair("X-RateLimit-Limit", "120"), Pair("X-RateLimit-Remaining", "15"),
                          Pair("X-RateLimit-Used", "105"), Pair("X-RateLimit-Reset", "1700000041"),
                          Pair("X-RateLimit-Resource", "search"), Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kTwitter),
              ElementsAre(Pair("x-rate-limit-limit", "120"), Pair("x-rate-limit-remaining", "15"),
                          Pair("x-rate-limit-reset", "1700000041"), Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kOpenai),
              ElementsAre(Pair("x-ratelimit-limit-requests", "120"),
                          Pair("x-ratelimit-remaining-requests", "15"),
                          Pair("x-ratelimit-reset-requests", "40s"), Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kAnthropic),
              ElementsAre(Pair("anthropic-ratelimit-requests-limit", "120"),
                          Pair("anthropic-ratelimit-requests-remaining", "15"),
                          Pair("anthropic-ratelimit-requests-reset", "2023-11-14T22:14:01Z"),
                          Pair("Retry-After", "20")));
  EXPECT_THAT(Emit(state, kNone), ElementsAre(Pair("Retry-After", "20")));
}

std::vector<std::string> NamesIn(RateLimitDialect dialect, QuotaUnit unit) {
  RateLimitState state = Search();
  state.unit = unit;
  std::vector<std::string> names;
  for (const auto& [name, value] : Emit(state, dialect)) names.push_back(name);
  return names;
}

TEST(RateLimitDialects, NameTheFieldsOfAnApiByWhatTheLimitCounts) {
  using enum RateLimitDialect;
  using enum QuotaUnit;
  for (const QuotaUnit unit : {kTokens, kInputTokens, kOutputTokens}) {
    EXPECT_THAT(NamesIn(kOpenai, unit),
                ElementsAre("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
                            "x-ratelimit-reset-tokens"));
    const std::string name = "anthropic-ratelimit-" + std::string(Name(unit));
    EXPECT_THAT(NamesIn(kAnthropic, unit),
                ElementsAre(name + "-limit", name + "-remaining", name + "-reset"));
  }
  for (const QuotaUnit unit : {kContentBytes, kConcurrentRequests}) {
    EXPECT_THAT(NamesIn(kOpenai, unit), IsEmpty());
    EXPECT_THAT(NamesIn(kAnthropic, unit), IsEmpty());
  }
}

// time.Duration.String() of Go writes the same for these lengths.
TEST(RateLimitDialects, OpenaiWritesTimesAsGoDoes) {
  RateLimitState state = Search();
  const auto reset = [&](base::Duration after) {
    state.reset_after = after;
    return Emit(state, RateLimitDialect::kOpenai).back().second;
  };
  EXPECT_EQ(reset(0s), "0s");
  EXPECT_EQ(reset(1ns), "1ms");
  EXPECT_EQ(reset(12ms), "12ms");
  EXPECT_EQ(reset(1s), "1s");
  EXPECT_EQ(reset(8640ms), "8.64s");
  EXPECT_EQ(reset(1s + 5ms), "1.005s");
  EXPECT_EQ(reset(6min), "6m0s");
  EXPECT_EQ(reset(1h), "1h0m0s");
  EXPECT_EQ(reset(25h + 2min + 3s), "25h2m3s");
  EXPECT_EQ(reset(base::kDurationMax), "1281023h53m38.428s");
}

TEST(RateLimitDialects, AnthropicNamesTheSecondInWhichAllIsBack) {
  RateLimitState state = Search();
  const auto reset = [&](base::Duration after) {
    state.reset_after = after;
    return Emit(state, RateLimitDialect::kAnthropic).back().second;
  };
  EXPECT_EQ(reset(0s), "2023-11-14T22:13:21Z");
  EXPECT_EQ(reset(500ms), "2023-11-14T22:13:21Z");
  EXPECT_EQ(reset(47 * 24h), "2023-12-31T22:13:21Z");
  EXPECT_EQ(reset(base::Duration::max()).size(), 20);
}

TEST(RateLimitDialects, TheDraftNamesAnyOtherUnitThanRequests) {
  RateLimitState state = Search();
  state.unit = QuotaUnit::kConcurrentRequests;
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=100;qu="concurrent-requests";w=60)");
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15;t=40)");
}

// A limit of 100 KiB a minute, in steps of a KiB.
TEST(RateLimitDialects, TheDraftCountsBytesAndNotSteps) {
  RateLimitState state = Search();
  state.unit = QuotaUnit::kContentBytes;
  state.unit_size = 1024;
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=102400;qu="content-bytes";w=60)");
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15360;t=40)");
  EXPECT_EQ(ValueOf(kRemaining, state), "15");
  state.quota = uint64_t{1} << 60;
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=999999999999999;qu="content-bytes";w=60)");
}

TEST(RateLimitDialects, ThePartsOfARuleHaveNamesOfTheirOwn) {
  RateLimitState state = Search();
  state.policy_part = "#2";
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search#2";q=100;w=60)");
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search#2";r=15;t=40)");
  EXPECT_THAT(Emit(state, RateLimitDialect::kGithub).back(),
              Pair("X-RateLimit-Resource", "search#2"));
}

TEST(RateLimitDialects, AStateWithItsOwnIsWrittenInIt) {
  RateLimitState state = Search();
  state.dialect = RateLimitDialect::kTwitter;
  EXPECT_EQ(Emit(state, RateLimitDialect::kAll), Emit(Search(), RateLimitDialect::kTwitter));
}

TEST(RateLimitFields, NameThePartitionAsAByteSequence) {
  RateLimitState state = Search();
  state.partition_key = {{'s', 'e', 'c', 'r', 'e', 't', 0xff, 0xfe, 0x00}};
  EXPECT_EQ(ValueOf(kPolicy, state), R"("search";q=100;w=60;pk=:c2VjcmV0//4A:)");
  EXPECT_EQ(ValueOf(kRateLimit, state), R"("search";r=15;t=40;pk=:c2VjcmV0//4A:)");
}

TEST(RateLimitDialects, HaveNames) {
  for (int i = 0; i <= static_cast<int>(RateLimitDialect::kNone); ++i) {
    const auto dialect = static_cast<RateLimitDialect>(i);
    EXPECT_EQ(DialectByName(Name(dialect)), dialect);
  }
  EXPECT_FALSE(DialectByName("draft-9"));
}

TEST(RateLimitDialects, AValueCannotEndAField) {
  RateLimitState state = Search();
  state.policy = "a\r\nX-Evil: 1\xff";
  for (const auto& [name, value] : Emit(state, RateLimitDialect::kGithub)) {
    EXPECT_EQ(value.find_first_of("\r\n"), value.npos) << name;
  }
  EXPECT_THAT(Emit(state, RateLimitDialect::kGithub).back(),
              Pair("X-RateLimit-Resource", "a%0D%0AX-Evil: 1%FF"));
}

TEST(RateLimitDialects, EmptyFieldsHaveAllNames) {
  Fields fields;
  EmitEmptyRateLimitFields(
      RateLimitDialect::kDraft6, nullptr,
      [&](std::string_view name, std::string_view value) { fields.emplace_back(name, value); });
  EXPECT_THAT(fields, ElementsAre(Pair("RateLimit-Policy", ""), Pair("RateLimit-Limit", ""),
                                  Pair("RateLimit-Remaining", ""), Pair("RateLimit-Reset", "")));
}

TEST(RateLimitDialects, EmptyFieldsAreThoseThatAStateDoesNotHave) {
  const auto empty = [](RateLimitDialect dialect, const RateLimitState& state) {
    std::vector<std::string> names;
    EmitEmptyRateLimitFields(dialect, &state, [&](std::string_view name, std::string_view value) {
      EXPECT_EQ(value, "");
      names.emplace_back(name);
    });
    return names;
  };
  RateLimitState state = Search();
  EXPECT_THAT(empty(RateLimitDialect::kAll, state), IsEmpty());
  state.dialect = RateLimitDialect::kGithub;
  EXPECT_THAT(empty(RateLimitDialect::kAll, state), ElementsAre("RateLimit-Policy", "RateLimit"));
  state.dialect = std::nullopt;
  state.unit = QuotaUnit::kInputTokens;
  EXPECT_THAT(empty(RateLimitDialect::kOpenai, state),
              ElementsAre("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
                          "x-ratelimit-reset-requests"));
}

TEST(StructuredField, IntegersHaveAtMost15Digits) {
  const auto integer = [](uint64_t value) {
    std::string out;
    AppendSfInteger(value, out);
    return out;
  };
  EXPECT_EQ(integer(0), "0");
  EXPECT_EQ(integer(999'999'999'999'999), "999999999999999");
  EXPECT_EQ(integer(1'000'000'000'000'000), "999999999999999");
  EXPECT_EQ(integer(std::numeric_limits<uint64_t>::max()), "999999999999999");
}

TEST(StructuredField, StringsAreQuotedAndPrintable) {
  const auto string = [](std::string_view text) {
    std::string out;
    AppendSfString(text, out);
    return out;
  };
  EXPECT_EQ(string(""), R"("")");
  EXPECT_EQ(string("a b~!"), R"("a b~!")");
  EXPECT_EQ(string(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(string("é\r\n\x7f"), R"("%C3%A9%0D%0A%7F")");
}

// RFC 9651's grammar for these fields: one string with integer parameters, delay-seconds, and plain
// numbers.
TEST(RateLimitFields, FollowTheirGrammarWhateverTheState) {
  const std::regex item(R"re("([ !#-\[\]-~]|\\["\\])*"(;[a-z*][a-z0-9_.*-]*=-?[0-9]{1,15})*)re");
  const std::regex number("[0-9]{1,15}");
  std::string every_byte;
  for (int c = 0; c < 256; ++c) every_byte.push_back(static_cast<char>(c));
  const std::vector<std::string> policies{"", "plain", R"(")", R"(\)", every_byte};
  const std::vector<uint64_t> numbers{0, 1, 1'000'000'000'000'000,
                                      std::numeric_limits<uint64_t>::max()};
  const std::vector<base::Duration> durations{0ns, 1ns, 1s, base::kDurationMax,
                                              base::Duration::max()};
  for (const std::string& policy : policies) {
    for (const uint64_t n : numbers) {
      for (const base::Duration d : durations) {
        const RateLimitState state{.policy = policy,
                                   .quota = n,
                                   .window = d,
                                   .limit = n,
                                   .remaining = n,
                                   .reset_after = d,
                                   .denied = true,
                                   .retry_after = d};
        for (const auto& [name, value] : Emit(state)) {
          const bool structured = name == "RateLimit" || name == "RateLimit-Policy";
          EXPECT_TRUE(std::regex_match(value, structured ? item : number)) << name << ": " << value;
        }
      }
    }
  }
}

// Nothing will be available, however long the client waits.
TEST(RateLimitFields, ALimitOfNothingHasNoReset) {
  const RateLimitState state{.policy = "p", .limit = 0, .denied = true, .retry_after = {}};
  for (const RateLimitDialect dialect :
       {RateLimitDialect::kAll, RateLimitDialect::kDraft, RateLimitDialect::kDraft7,
        RateLimitDialect::kDraft6, RateLimitDialect::kDraft3, RateLimitDialect::kGithub,
        RateLimitDialect::kTwitter, RateLimitDialect::kOpenai, RateLimitDialect::kAnthropic}) {
    for (const auto& [name, value] : Emit(state, dialect)) {
      EXPECT_EQ(name.find("eset"), name.npos) << name;
      EXPECT_NE(name, "Retry-After");
      EXPECT_EQ(value.find("reset"), value.npos) << value;
      EXPECT_EQ(value.find(";t="), value.npos) << value;
    }
  }
}

}  // namespace http_fields_test
}  // namespace headgate::wire
