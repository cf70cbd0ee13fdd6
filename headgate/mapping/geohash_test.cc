#include "headgate/mapping/geohash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace headgate::mapping {
namespace geohash_test {

std::string Geohash(std::string_view latitude, std::string_view longitude, uint32_t characters) {
  const auto y = ParseDegrees(latitude, 90);
  const auto x = ParseDegrees(longitude, 180);
  if (!y || !x) return "<refused>";
  std::string out;
  AppendGeohash(*y, *x, characters, out);
  return out;
}

TEST(Geohash, GivesThePublishedCells) {
  EXPECT_EQ(Geohash("57.64911", "10.40744", 11), "u4pruydqqvj");
  EXPECT_EQ(Geohash("42.605", "-5.603", 5), "ezs42");
  EXPECT_EQ(Geohash("0", "0", 1), "s");
  EXPECT_EQ(Geohash("-90", "-180", 12), "000000000000");
}

TEST(Geohash, AShorterCellIsAPrefix) {
  const std::string full = Geohash("-33.8567844", "151.213108", 12);
  for (uint32_t n = 1; n <= 12; ++n) {
    EXPECT_EQ(Geohash("-33.8567844", "151.213108", n), full.substr(0, n));
  }
}

TEST(Geohash, TheEdgesOfTheMapBelongToACell) {
  EXPECT_EQ(Geohash("0", "180", 4), Geohash("0", "-180", 4));
  EXPECT_EQ(Geohash("90", "0", 4), "upbp");
}

TEST(Degrees, RoundDownAndRefuseEverythingElse) {
  EXPECT_EQ(ParseDegrees("-0.0000000001", 90), -1);
  EXPECT_EQ(ParseDegrees("0.0000000019", 90), 1);
  EXPECT_EQ(ParseDegrees("90.000000000000", 90), 90'000'000'000);
  for (const std::string_view text : {"", "-", ".5", "5.", "NaN", "inf", "1e1", "90.0000000001",
                                      "91", "1000", "0x1", " 1", "1,5", "--1"}) {
    EXPECT_FALSE(ParseDegrees(text, 90)) << text;
  }
}

}  // namespace geohash_test
}  // namespace headgate::mapping
