#include "headgate/base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace headgate::base {
namespace json_test {

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

TEST(JsonString, EscapesWhatJsonMust) {
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString("plain /text"), R"("plain /text")");
  EXPECT_EQ(JsonString("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(JsonString("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(JsonString("\u0080\u009f"), R"("\u0080\u009f")");
}

TEST(JsonString, KeepsUtf8) {
  EXPECT_EQ(JsonString("é€😀"), "\"é€😀\"");
  EXPECT_EQ(JsonString("\u00a0\u07ff\u0800\ue000\uffff"), "\"\u00a0\u07ff\u0800\ue000\uffff\"");
}

// The examples of the Unicode Standard, 3.9, tables 3-8 to 3-11: one U+FFFD for each maximal
// subpart.
TEST(JsonString, ReplacesWhatIsNoUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(JsonString("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\"" + r + r + r + r + r + r + r + r + "A\"");
  EXPECT_EQ(JsonString("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\"" + r + r + r + r + r + r + r + r + "A\"");
  EXPECT_EQ(JsonString("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\"" + r + r + r + r + r + "A" + r + r + "B\"");
  EXPECT_EQ(JsonString("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\"" + r + r + r + r + "A\"");
}

TEST(JsonNumber, HasAllDigits) {
  std::string out;
  AppendJsonNumber(uint64_t{0}, out);
  AppendJsonNumber(std::numeric_limits<uint64_t>::max(), out += ' ');
  AppendJsonNumber(std::numeric_limits<int64_t>::min(), out += ' ');
  AppendJsonBool(true, out += ' ');
  AppendJsonBool(false, out += ' ');
  EXPECT_EQ(out, "0 18446744073709551615 -9223372036854775808 true false");
}

}  // namespace json_test
}  // namespace headgate::base
