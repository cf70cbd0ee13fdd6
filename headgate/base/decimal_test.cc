#include "headgate/base/decimal.h"

#include <gtest/gtest.h>

#include <random>

namespace headgate::base {
namespace decimal_test {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// The number's text, or the reason why there is none.
std::string Read(std::string_view text) {
  Decimal number;
  switch (ParseDecimal(text, number)) {
    case DecimalProblem::kNone:
      return ToText(number);
    case DecimalProblem::kNotANumber:
      return "not a number";
    case DecimalProblem::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

TEST(Decimal, IsReadInEveryFormOfItsText) {
  EXPECT_EQ(Read("0"), "0");
  EXPECT_EQ(Read("-0.000"), "0");
  EXPECT_EQ(Read("007"), "7");
  EXPECT_EQ(Read("+12.50"), "12.5");
  EXPECT_EQ(Read(".5"), "0.5");
  EXPECT_EQ(Read("5."), "5");
  EXPECT_EQ(Read("-2.5e-3"), "-0.0025");
  EXPECT_EQ(Read("2.5E+3"), "2500");
  EXPECT_EQ(Read("100200.300400"), "100200.3004");
  EXPECT_EQ(Read("0e999999999999"), "0");
}

TEST(Decimal, IsRefusedIfTheTextIsNoNumber) {
  for (const std::string_view text : {"", "-", ".", "e5", "1e", "1e+", "1.2.3", "1 ", " 1", "1,5",
                                      "0x10", "inf", "-Infinity", "nan", "--1", "1e5e5"}) {
    EXPECT_EQ(Read(text), "not a number") << text;
  }
}

TEST(Decimal, HasSixtyFourBitsAndSeventeenDecimals) {
  EXPECT_EQ(Read("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Read("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Read("9223372036854775808"), "does not fit");
  EXPECT_EQ(Read("-9223372036854775809"), "does not fit");
  EXPECT_EQ(Read("0.00000000000000001"), "0.00000000000000001");
  EXPECT_EQ(Read("0.000000000000000010"), "0.00000000000000001");
  EXPECT_EQ(Read("0.000000000000000001"), "does not fit");
  EXPECT_EQ(Read("92.23372036854775807"), "92.23372036854775807");
  EXPECT_EQ(Read("92.23372036854775808"), "does not fit");
  EXPECT_EQ(Read("1e18"), "1000000000000000000");
  EXPECT_EQ(Read("1e19"), "does not fit");
  EXPECT_EQ(Read("1e-99999999999999999999"), "does not fit");
  EXPECT_EQ(Read("10000000000000000000000000001"), "does not fit");
}

TEST(Decimal, SurvivesItsTextAndItsWideForm) {
  std::mt19937_64 random(20'261'124);
  for (int i = 0; i < 100'000; ++i) {
    const int64_t units = static_cast<int64_t>(random()) >> random() % 64;
    const Decimal start{.units = units, .scale = static_cast<uint32_t>(random() % 18)};
    const auto number = Decimal::FromWide(start.wide());
    ASSERT_TRUE(number.has_value());
    EXPECT_TRUE(number->wide() == start.wide());
    EXPECT_TRUE(number->scale == 0 || number->units % 10 != 0);
    Decimal read;
    ASSERT_EQ(ParseDecimal(ToText(*number), read), DecimalProblem::kNone) << ToText(*number);
    EXPECT_EQ(read, *number);
  }
}

TEST(Decimal, FromWideRefusesWhatNeedsMoreThan64Bits) {
  EXPECT_EQ(Decimal::FromWide(Decimal::Max().wide()), Decimal::Max());
  EXPECT_EQ(Decimal::FromWide(Decimal::Min().wide()), Decimal::Min());
  EXPECT_FALSE(Decimal::FromWide(Decimal::Max().wide() + 1).has_value());
  EXPECT_FALSE(Decimal::FromWide(2 * Decimal::Min().wide()).has_value());
}

TEST(StrictInteger, HasOneTextForEachNumber) {
  EXPECT_EQ(ParseStrictInteger("0"), 0);
  EXPECT_EQ(ParseStrictInteger("-12"), -12);
  EXPECT_EQ(ParseStrictInteger(std::to_string(kMin)), kMin);
  EXPECT_EQ(ParseStrictInteger(std::to_string(kMax)), kMax);
  for (const std::string_view text :
       {"", "-", "+1", "01", "-0", "-01", "1.0", "1e3", " 1", "1 ", "9223372036854775808"}) {
    EXPECT_EQ(ParseStrictInteger(text), std::nullopt) << text;
  }
}

}  // namespace decimal_test
}  // namespace headgate::base
