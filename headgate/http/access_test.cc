#include "headgate/http/access.h"

#include <gtest/gtest.h>

namespace headgate::http {
namespace {

TEST(Access, OnlyTheCredentialMatches) {
  const Access access{.credential = "s3cret-\xff"};
  EXPECT_TRUE(access.Matches("s3cret-\xff"));
  EXPECT_FALSE(access.Matches(""));
  EXPECT_FALSE(access.Matches("s3cret-"));
  EXPECT_FALSE(access.Matches("s3cret-\xff\xff"));
  for (size_t i = 0; i < access.credential.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string other = access.credential;
      other[i] = static_cast<char>(static_cast<unsigned char>(other[i]) ^ (1u << bit));
      EXPECT_FALSE(access.Matches(other)) << i << ", bit " << bit;
    }
  }
  EXPECT_FALSE(access.Matches(std::string_view("s3cret-\0", 8)));
}

TEST(Access, NothingMatchesIfNoneIsSet) {
  EXPECT_FALSE(Access{}.Matches(""));
  EXPECT_FALSE(Access{}.Matches("x"));
}

}  // namespace
}  // namespace headgate::http
