#include "headgate/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace headgate::base {
namespace utf8_test {

// Encodes any number below 2^21, including surrogates, by the definition of UTF-8.
std::string Encode(uint32_t number) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | (number >> shift & 0x3F));
  };
  if (number < 0x80) return {static_cast<char>(number)};
  if (number < 0x800) return {static_cast<char>(0xC0 | number >> 6), tail(0)};
  if (number < 0x10000) return {static_cast<char>(0xE0 | number >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | number >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCharacterOfUnicodeIsWellFormedAndNothingElse) {
  for (uint32_t number = 0; number < 0x200000; ++number) {
    const std::string text = Encode(number);
    const Utf8Prefix first = FirstUtf8(text);
    const bool scalar = number <= 0x10FFFF && (number < 0xD800 || number > 0xDFFF);
    ASSERT_EQ(first.well_formed, scalar) << std::hex << number;
    if (scalar) {
      ASSERT_EQ(first.bytes, text.size()) << std::hex << number;
    }
  }
}

TEST(Utf8, OverlongFormsAreNotWellFormed) {
  for (const std::string_view text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(FirstUtf8(text).well_formed);
    EXPECT_EQ(FirstUtf8(text).bytes, 1u);
  }
}

TEST(Utf8, ACharacterThatIsCutOffIsReplacedAsAWhole) {
  EXPECT_EQ(FirstUtf8("\xE2\x82").bytes, 2u);
  EXPECT_FALSE(FirstUtf8("\xE2\x82").well_formed);
  EXPECT_EQ(FirstUtf8("\xF0\x9F\x98x").bytes, 3u);
  EXPECT_FALSE(FirstUtf8("\xF0\x9F\x98x").well_formed);
}

TEST(Utf8, ATextIsWellFormedIfAllItsCharactersAre) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\xC3\xBC\xF0\x9F\x98\x80"));
  EXPECT_FALSE(IsUtf8("a\xC3"));
  EXPECT_FALSE(
      IsUtf8("\xFF\xFE"
             "a"));
}

TEST(Utf8, C1ControlsAreThoseFromU80ToU9F) {
  for (uint32_t number = 0; number < 0x10000; ++number) {
    EXPECT_EQ(BeginsWithC1Control(Encode(number)), number >= 0x80 && number <= 0x9F)
        << std::hex << number;
  }
  EXPECT_FALSE(BeginsWithC1Control("\xC2"));
  EXPECT_FALSE(BeginsWithC1Control(""));
}

}  // namespace utf8_test
}  // namespace headgate::base
