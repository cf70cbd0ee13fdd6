#include "headgate/rule/duration.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace duration_test {

using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseDuration(text);
  return parsed.ok() ? "(parsed)" : std::string(parsed.status().message());
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(*ParseDuration("7ns"), 7ns);
  EXPECT_EQ(*ParseDuration("7us"), 7us);
  EXPECT_EQ(*ParseDuration("7ms"), 7ms);
  EXPECT_EQ(*ParseDuration("7s"), 7s);
  EXPECT_EQ(*ParseDuration("7m"), 7min);
  EXPECT_EQ(*ParseDuration("7h"), 7h);
  EXPECT_EQ(*ParseDuration("7d"), 168h);
  EXPECT_EQ(*ParseDuration("0s"), 0ns);
  EXPECT_EQ(*ParseDuration("007s"), 7s);
}

TEST(ParseDuration, AddsTerms) {
  EXPECT_EQ(*ParseDuration("1h30m"), 90min);
  EXPECT_EQ(*ParseDuration("1790000000s7ns"), 1'790'000'000s + 7ns);
  EXPECT_EQ(*ParseDuration("1s1s"), 2s);
  EXPECT_EQ(*ParseDuration("1ms1s"), 1001ms);
}

TEST(ParseDuration, ReadsDecimalFractionsExactly) {
  EXPECT_EQ(*ParseDuration("9.9s"), 9'900'000'000ns);
  EXPECT_EQ(*ParseDuration("0.000000001s"), 1ns);
  EXPECT_EQ(*ParseDuration("0.10000000000000000000000000s"), 100ms);
  EXPECT_EQ(*ParseDuration("0.5m"), 30s);
  EXPECT_EQ(*ParseDuration("1.25d"), 30h);
  EXPECT_EQ(*ParseDuration("1.5h0.5m"), 90min + 30s);
  // 2^-16 of a day has 16 decimal places and is 3^3·5^11 ns. No finer binary fraction is a whole
  // number of ns.
  EXPECT_EQ(*ParseDuration("0.0000152587890625d"), 1'318'359'375ns);
}

TEST(ParseDuration, RefusesWhatIsFinerThanANanosecond) {
  EXPECT_EQ(ErrorOf("0.5ns"),
            "\"0.5ns\" is not a duration: the duration is finer than a nanosecond");
  EXPECT_EQ(ErrorOf("0.0000000001s"),
            "\"0.0000000001s\" is not a duration: the duration is finer than a nanosecond");
  EXPECT_EQ(ErrorOf("0.00000762939453125d"),
            "\"0.00000762939453125d\" is not a duration: the duration is finer than a nanosecond");
}

TEST(ParseDuration, EndsJustBelowTwoToThe62) {
  EXPECT_EQ(ParseDuration("4611686018427387903ns")->count(), (int64_t{1} << 62) - 1);
  EXPECT_EQ(ErrorOf("4611686018427387904ns"),
            "\"4611686018427387904ns\" is not a duration: it is longer than 146 years");
  EXPECT_EQ(ParseDuration("4611686018.427387903s")->count(), (int64_t{1} << 62) - 1);
  EXPECT_EQ(ErrorOf("4611686018.427387904s"),
            "\"4611686018.427387904s\" is not a duration: it is longer than 146 years");
  EXPECT_EQ(ErrorOf("4611686018s427387904ns"),
            "\"4611686018s427387904ns\" is not a duration: it is longer than 146 years");
  EXPECT_EQ(ErrorOf("99999999999999999999999999d"),
            "\"99999999999999999999999999d\" is not a duration: it is longer than 146 years");
}

TEST(ParseDuration, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf(""), "\"\" is not a duration: write numbers with a unit, such as 20s or 1h30m");
  EXPECT_EQ(
      ErrorOf("20"),
      "\"20\" is not a duration: the unit is missing; use ns, us, ms, s, m, h or d, as in 20s");
  EXPECT_EQ(
      ErrorOf("1h30"),
      "\"1h30\" is not a duration: the unit is missing; use ns, us, ms, s, m, h or d, as in 20s");
  EXPECT_EQ(ErrorOf("s"),
            "\"s\" is not a duration: a number must come before each unit, as in 20s or 1h30m");
  EXPECT_EQ(ErrorOf("-1s"),
            "\"-1s\" is not a duration: a number must come before each unit, as in 20s or 1h30m");
  EXPECT_EQ(ErrorOf(".5s"),
            "\".5s\" is not a duration: a number must come before each unit, as in 20s or 1h30m");
  EXPECT_EQ(ErrorOf("1.s"), "\"1.s\" is not a duration: digits must follow the decimal point");
  EXPECT_EQ(ErrorOf("1w"),
            "\"1w\" is not a duration: unknown unit \"w\"; the units are ns, us, ms, s, m, h, d");
  EXPECT_EQ(ErrorOf("1S"),
            "\"1S\" is not a duration: unknown unit \"S\"; the units are ns, us, ms, s, m, h, d");
  EXPECT_EQ(
      ErrorOf("1h 30m"),
      "\"1h 30m\" is not a duration: unknown unit \"h \"; the units are ns, us, ms, s, m, h, d");
  EXPECT_EQ(
      ErrorOf("1.5.5s"),
      "\"1.5.5s\" is not a duration: unknown unit \".\"; the units are ns, us, ms, s, m, h, d");
  EXPECT_EQ(
      ErrorOf("1\x1b[2Js"),
      "\"1\\x1b[2Js\" is not a duration: unknown unit \"\\x1b[\"; the units are ns, us, ms, s, "
      "m, h, d");
}

TEST(FormatDuration, PrintsTheShortestSum) {
  EXPECT_EQ(FormatDuration(0ns), "0s");
  EXPECT_EQ(FormatDuration(7ns), "7ns");
  EXPECT_EQ(FormatDuration(1500ns), "1.5us");
  EXPECT_EQ(FormatDuration(100ms), "100ms");
  EXPECT_EQ(FormatDuration(100ms + 1ns), "100.000001ms");
  EXPECT_EQ(FormatDuration(9900ms), "9.9s");
  EXPECT_EQ(FormatDuration(1s), "1s");
  EXPECT_EQ(FormatDuration(60s), "1m");
  EXPECT_EQ(FormatDuration(90min), "1h30m");
  EXPECT_EQ(FormatDuration(24h + 7ns), "1d0.000000007s");
  EXPECT_EQ(FormatDuration(-10s), "-10s");
  EXPECT_EQ(FormatDuration(-1ns), "-1ns");
}

TEST(FormatDuration, IsReadBackAsTheSame) {
  // Tests every number with up to four significant digits at every power of ten, and both ends of
  // the range.
  for (int64_t scale = 1; scale <= 100'000'000'000'000; scale *= 10) {
    for (int64_t count = 0; count < 10'000; ++count) {
      const base::Duration duration(count * scale);
      ASSERT_EQ(*ParseDuration(FormatDuration(duration)), duration) << FormatDuration(duration);
    }
  }
  EXPECT_EQ(*ParseDuration(FormatDuration(base::kDurationMax)), base::kDurationMax);
}

TEST(FormatDuration, PrintsTheLargestAndSmallestNumbers) {
  EXPECT_EQ(FormatDuration(base::Duration(std::numeric_limits<int64_t>::max())),
            "106751d23h47m16.854775807s");
  EXPECT_EQ(FormatDuration(base::Duration(std::numeric_limits<int64_t>::min())),
            "-106751d23h47m16.854775808s");
}

}  // namespace duration_test
}  // namespace headgate::rule
