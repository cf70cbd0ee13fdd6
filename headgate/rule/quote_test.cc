#include "headgate/rule/quote.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace quote_test {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(Printable("api_key \"x\" é 漢 🙂"), "api_key \"x\" é 漢 🙂");
}

TEST(PrintableLines, KeepsTheLines) {
  EXPECT_EQ(PrintableLines("a\x1b[2J\n\nb"), "a\\x1b[2J\n\nb\n");
  EXPECT_EQ(PrintableLines(""), "");
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b2J");  // CSI as a C1 control
}

TEST(Printable, ShowsWhatTurnsTheOrderOfCharacters) {
  EXPECT_EQ(Printable("a\u202Elmay.b"), "a\\xe2\\x80\\xaelmay.b");
  EXPECT_EQ(Printable("\u061C"), "\\xd8\\x9c");
  for (const std::string_view control : {"\u200E", "\u200F", "\u202A", "\u2066", "\u2069"})
    EXPECT_EQ(Printable(control).size(), 12u) << Printable(control);
  // Their neighbours: zero width joiner, line separators, invisible plus and a formatting
  // character.
  for (const std::string_view other : {"\u200D", "\u2010", "\u2029", "\u202F", "\u2065", "\u206A"})
    EXPECT_EQ(Printable(other), other);
}

TEST(Printable, ShowsWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xFF"), "\\xff");
  EXPECT_EQ(Printable("\xC3"), "\\xc3");
  EXPECT_EQ(Printable("\xC0\xAF"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");  // overlong
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xF8\x88\x80\x80\x80"), "\\xf8\\x88\\x80\\x80\\x80");
}

TEST(Quote, EscapesQuotesAndBackslashes) { EXPECT_EQ(Quote("a\"b\\c"), "\"a\\\"b\\\\c\""); }

TEST(Quote, CutsAt64BytesBetweenCharacters) {
  const std::string whole(64, 'a');
  EXPECT_EQ(Quote(whole), fmt::format("\"{}\"", whole));
  EXPECT_EQ(Quote(fmt::format("{}a", whole)), fmt::format("\"{}…\"", whole));
  const std::string_view shorter = std::string_view(whole).substr(1);
  EXPECT_EQ(Quote(fmt::format("{}é", shorter)), fmt::format("\"{}…\"", shorter));
}

}  // namespace quote_test
}  // namespace headgate::rule
