#include "headgate/base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace headgate::base {
namespace text_test {

// Compares each class with the list of its characters, for every char.
TEST(Text, ClassesAreThoseOfAscii) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLowers = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kUppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = std::numeric_limits<char>::min(); i <= std::numeric_limits<char>::max(); ++i) {
    const char c = static_cast<char>(i);
    const bool digit = kDigits.find(c) != std::string_view::npos;
    const bool lower = kLowers.find(c) != std::string_view::npos;
    const bool upper = kUppers.find(c) != std::string_view::npos;
    EXPECT_EQ(IsDigit(c), digit) << i;
    EXPECT_EQ(IsLower(c), lower) << i;
    EXPECT_EQ(IsUpper(c), upper) << i;
    EXPECT_EQ(IsLetter(c), lower || upper) << i;
    EXPECT_EQ(IsLetterOrDigit(c), digit || lower || upper) << i;
    EXPECT_EQ(ToLower(c), upper ? kLowers[kUppers.find(c)] : c) << i;
  }
}

TEST(Text, HexValuesAreOfBothCases) {
  constexpr std::string_view kUpperHex = "0123456789ABCDEF";
  for (int i = std::numeric_limits<char>::min(); i <= std::numeric_limits<char>::max(); ++i) {
    const char c = static_cast<char>(i);
    const size_t lower = std::string_view(kHexDigits).find(c);
    const size_t upper = kUpperHex.find(c);
    const size_t value = std::min(lower, upper);
    EXPECT_EQ(HexValue(c), value == std::string_view::npos ? -1 : static_cast<int>(value)) << i;
  }
}

TEST(Text, EveryByteHasTwoHexDigits) {
  for (unsigned byte = 0; byte <= 0xff; ++byte) {
    std::string out = "x";
    AppendHex(static_cast<uint8_t>(byte), out);
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(static_cast<unsigned>(HexValue(out[1]) * 16 + HexValue(out[2])), byte);
  }
}

TEST(Text, CaseIsIgnoredInLettersOnly) {
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_TRUE(EqualsIgnoreCase("Content-LENGTH", "content-length"));
  EXPECT_FALSE(EqualsIgnoreCase("a", "aa"));
  EXPECT_FALSE(EqualsIgnoreCase("[", "{")) << "32 apart, as letters are";
  EXPECT_FALSE(EqualsIgnoreCase("@", "`"));
  EXPECT_FALSE(EqualsIgnoreCase("\xC4", "\xE4")) << "Ä and ä of Latin-1";
}

}  // namespace text_test
}  // namespace headgate::base
