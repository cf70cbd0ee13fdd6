#include "headgate/net/name_targets.h"

#include <gtest/gtest.h>

namespace headgate::net {
namespace name_targets_test {

TEST(NameTargets, OnlyNamesHaveNoKnownAddresses) {
  EXPECT_TRUE(KnownAddresses({.host = "app.test", .port = 80}).empty());
  EXPECT_TRUE(KnownAddresses({.host = "1.2.3.4.test", .port = 80}).empty());
  EXPECT_EQ(KnownAddresses({.host = "127.0.0.1", .port = 80}).size(), 1u);
  EXPECT_EQ(KnownAddresses({.host = "::1", .port = 80}).size(), 1u);
  EXPECT_EQ(KnownAddresses({.unix_path = "/run/s"}).size(), 1u);
  EXPECT_EQ(KnownAddresses({.host = "localhost", .port = 80}).size(), 2u);
}

TEST(NameTargets, TheTargetOfAnAddressHasOneSpelling) {
  EXPECT_EQ(TargetOf(Ipv4Socket("127.0.0.2", 9000)),
            (StreamTarget{.host = "127.0.0.2", .port = 9000}));
  EXPECT_EQ(TargetOf(Ipv6Socket("2001:DB8:0:0::1", 443)),
            (StreamTarget{.host = "2001:db8::1", .port = 443}));
}

}  // namespace name_targets_test
}  // namespace headgate::net
