#include "headgate/access/password_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headgate::access {
namespace password_hash_test {

using ::testing::MatchesRegex;

TEST(PasswordHash, AgreesWithRfc7914) {
  // Section 12: scrypt("pleaseletmein", "SodiumChloride", 16384, 8, 1), 64 bytes.
  const auto hash = ParsePasswordHash(
      "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$"
      "cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofL"
      "VQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw");
  ASSERT_TRUE(hash.ok()) << hash.status();
  EXPECT_TRUE(Matches(*hash, "pleaseletmein"));
  EXPECT_FALSE(Matches(*hash, "pleaseletmeout"));
}

TEST(PasswordHash, MatchesOnlyItsPassword) {
  const std::string text = HashPassword("secret");
  EXPECT_THAT(text, MatchesRegex("\\$scrypt\\$ln=15,r=8,p=1\\$[A-Za-z0-9+/]+\\$[A-Za-z0-9+/]+"));
  const auto hash = ParsePasswordHash(text);
  ASSERT_TRUE(hash.ok()) << hash.status();
  EXPECT_TRUE(Matches(*hash, "secret"));
  EXPECT_FALSE(Matches(*hash, "secre"));
  EXPECT_FALSE(Matches(*hash, "secret "));
  EXPECT_FALSE(Matches(*hash, ""));
  EXPECT_NE(HashPassword("secret"), text) << "the salt is new each time";
}

TEST(PasswordHash, RefusesTextsThatAreNone) {
  const std::string hash = "$" + std::string(43, 'A');
  for (const std::string& text : std::vector<std::string>{
           "", "secret", "$scrypt$ln=15,r=8,p=1$AAAA", "$scrypt$ln=15,r=8$AAAA" + hash,
           "$scrypt$ln=15,r=8,p=1$AAAA$AAAA", "$scrypt$ln=15,r=8,p=1$AAAA" + hash + "$",
           "$scrypt$ln=15,r=8,p=1$A*AA" + hash, "$scrypt$ln=99999999999,r=8,p=1$AAAA" + hash,
           "$bcrypt$ln=15,r=8,p=1$AAAA" + hash}) {
    EXPECT_FALSE(ParsePasswordHash(text).ok()) << text;
  }
}

TEST(PasswordHash, BoundsTheWork) {
  const auto with = [](const std::string& work) {
    return ParsePasswordHash("$scrypt$" + work + "$AAAA$" + std::string(43, 'A')).ok();
  };
  EXPECT_TRUE(with("ln=17,r=8,p=1")) << "128 MiB";
  EXPECT_FALSE(with("ln=18,r=8,p=1")) << "256 MiB and some more";
  EXPECT_TRUE(with("ln=10,r=8,p=8"));
  EXPECT_FALSE(with("ln=10,r=8,p=9"));
  EXPECT_FALSE(with("ln=0,r=8,p=1"));
  EXPECT_FALSE(with("ln=10,r=0,p=1"));
  EXPECT_FALSE(with("ln=64,r=8,p=1"));
}

}  // namespace password_hash_test
}  // namespace headgate::access
