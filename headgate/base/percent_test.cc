#include "headgate/base/percent.h"

#include <gtest/gtest.h>

namespace headgate::base {
namespace percent_test {

TEST(Percent, EncodesAllButLettersDigitsAndWhatIsKept) {
  EXPECT_EQ(PercentEncoded("aZ09-._~", "-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncoded("a/b c%", "/"), "a/b%20c%25");
  EXPECT_EQ(PercentEncoded(std::string_view("\0\xff", 2), ""), "%00%FF");
}

TEST(Percent, Decodes) {
  EXPECT_EQ(PercentDecoded(""), "");
  EXPECT_EQ(PercentDecoded("a%2fb%2F%C3%BC"), "a/b/ü");
}

TEST(Percent, RefusesWhatIsNotComplete) {
  for (const std::string_view text : {"%", "%2", "a%2", "%zz", "%0g", "%00", "100%"})
    EXPECT_EQ(PercentDecoded(text), std::nullopt) << text;
}

TEST(Percent, EncodesEveryByte) {
  for (int byte = 1; byte < 256; ++byte) {
    std::string text;
    AppendPercent(static_cast<char>(byte), text);
    EXPECT_EQ(text.size(), 3u);
    EXPECT_EQ(PercentDecoded(text), std::string(1, static_cast<char>(byte)));
  }
}

}  // namespace percent_test
}  // namespace headgate::base
