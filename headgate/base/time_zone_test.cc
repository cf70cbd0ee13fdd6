#include "headgate/base/time_zone.h"

#include <string>

#include <gtest/gtest.h>

namespace headgate::base {
namespace time_zone_test {

TimeZone Zone(std::string_view name) { return TimeZone::Load(name).value(); }

TEST(TimeZone, IsUtcByDefault) {
  EXPECT_TRUE(TimeZone().is_utc());
  EXPECT_EQ(TimeZone().name(), "UTC");
  EXPECT_EQ(TimeZone(), Zone("UTC"));
  ASSERT_EQ(TimeZone().changes().size(), 1u);
  EXPECT_EQ(TimeZone().changes()[0].offset_s, 0);
}

TEST(TimeZone, IsTheSameWheneverItIsLoaded) {
  EXPECT_EQ(Zone("Europe/Berlin"), Zone("Europe/Berlin"));
  EXPECT_EQ(Zone("Europe/Berlin").name(), "Europe/Berlin");
  EXPECT_NE(Zone("Europe/Berlin"), Zone("Europe/Paris")) << "they have other names";
  EXPECT_NE(Zone("Europe/Berlin"), TimeZone());
}

// Summer time of the European Union: from the last Sunday of March to that of October, at 01:00
// UTC.
TEST(TimeZone, KnowsWhenItsClocksChange) {
  const auto changes = Zone("Europe/Berlin").changes();
  ASSERT_EQ(changes.size(), 1u + 2 * 40u) << "from 2020 to 2060";
  EXPECT_EQ(changes[0], (TimeZone::Change{1'577'836'800, 3600}));
  EXPECT_EQ(changes[1], (TimeZone::Change{1'585'443'600, 7200})) << "2020-03-29";
  EXPECT_EQ(changes[2], (TimeZone::Change{1'603'587'600, 3600})) << "2020-10-25";
  EXPECT_EQ(changes[80], (TimeZone::Change{2'834'355'600, 3600})) << "2059-10-26";
  EXPECT_EQ(Zone("Asia/Kathmandu").changes().size(), 1u);
  EXPECT_EQ(Zone("Asia/Kathmandu").changes()[0].offset_s, 20'700) << "5 h 45 min";
  EXPECT_EQ(Zone("Etc/GMT+12").changes()[0].offset_s, -43'200) << "the database's sign";
}

TEST(TimeZone, RefusesWhatIsNoName) {
  for (const std::string& name :
       {std::string(), std::string("/etc/localtime"), std::string("../zoneinfo/Europe/Berlin"),
        std::string("Europe/../Europe/Berlin"), std::string("file:Europe/Berlin"),
        std::string("localtime"), std::string("right/Europe/Berlin"),
        std::string("Europe/Berlin\0", 14), std::string("Europe/Berlin "),
        std::string("Fixed/UTC+01:00:00"), std::string(65, 'a')}) {
    EXPECT_EQ(TimeZone::Load(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  for (const char* const name : {"Europe/Berlim", "europe/berlin", "Europe", "CEST", "zone1970"})
    EXPECT_EQ(TimeZone::Load(name).status().code(), absl::StatusCode::kNotFound) << name;
}

}  // namespace time_zone_test
}  // namespace headgate::base
