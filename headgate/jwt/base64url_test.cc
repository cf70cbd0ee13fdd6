#include "headgate/jwt/base64url.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/jwt/test_signer.h"

namespace headgate::jwt {
namespace base64url_test {

// The bytes, or "<refused>".
std::string Decoded(std::string_view text) {
  std::string out;
  return DecodeBase64Url(text, out) ? out : "<refused>";
}

// RFC 4648, section 10.
TEST(Base64Url, DecodesTheExamplesOfTheRfc) {
  EXPECT_EQ(Decoded(""), "");
  EXPECT_EQ(Decoded("Zg"), "f");
  EXPECT_EQ(Decoded("Zm8"), "fo");
  EXPECT_EQ(Decoded("Zm9v"), "foo");
  EXPECT_EQ(Decoded("Zm9vYmFy"), "foobar");
  EXPECT_EQ(Decoded("-_-_"), "\xfb\xff\xbf");
}

TEST(Base64Url, EachValueHasOneSpelling) {
  for (const std::string_view text : {"Zg==", "Zh", "Zm9", "Z", "Zm9vY", "+/+/", "Zm 8", "Zm8\n"}) {
    EXPECT_EQ(Decoded(text), "<refused>") << text;
  }
}

TEST(Base64Url, DecodesEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(i));
    EXPECT_EQ(Decoded(EncodeBase64Url(bytes)), bytes);
  }
}

}  // namespace base64url_test
}  // namespace headgate::jwt
