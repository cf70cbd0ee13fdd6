#include "headgate/base/ip_network_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

namespace headgate::base {
namespace ip_network_map_test {

IpAddress At(std::string_view text) { return *ParseIpAddress(text); }
IpNetworkMap::Item Item(std::string_view network, uint32_t value) {
  return {.network = *ParseIpNetwork(network), .value = value};
}

TEST(IpNetworkMap, FindsTheLongestPrefix) {
  const IpNetworkMap map({Item("10.1.2.0/24", 3), Item("10.0.0.0/8", 1), Item("10.1.0.0/16", 2),
                          Item("10.1.2.3", 4), Item("2001:db8::/32", 5)});
  EXPECT_EQ(map.Find(At("10.0.0.0")), 1u);
  EXPECT_EQ(map.Find(At("10.0.255.255")), 1u);
  EXPECT_EQ(map.Find(At("10.1.0.0")), 2u);
  EXPECT_EQ(map.Find(At("10.1.2.2")), 3u);
  EXPECT_EQ(map.Find(At("10.1.2.3")), 4u);
  EXPECT_EQ(map.Find(At("10.1.2.4")), 3u);
  EXPECT_EQ(map.Find(At("10.1.3.0")), 2u);
  EXPECT_EQ(map.Find(At("10.2.0.0")), 1u);
  EXPECT_EQ(map.Find(At("10.255.255.255")), 1u);
  EXPECT_EQ(map.Find(At("::ffff:10.1.2.3")), 4u) << "the same address";
  EXPECT_EQ(map.Find(At("2001:db8:ffff::1")), 5u);
  for (const std::string_view text : {"9.255.255.255", "11.0.0.0", "::", "2001:db9::"})
    EXPECT_EQ(map.Find(At(text)), std::nullopt) << text;
}

TEST(IpNetworkMap, HasNetworksUpToTheLastAddress) {
  const IpNetworkMap map({Item("::/0", 1), Item("ff00::/8", 2),
                          Item("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 3), Item("::", 4)});
  EXPECT_EQ(map.Find(At("::")), 4u);
  EXPECT_EQ(map.Find(At("::1")), 1u);
  EXPECT_EQ(map.Find(At("255.255.255.255")), 1u);
  EXPECT_EQ(map.Find(At("feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")), 1u);
  EXPECT_EQ(map.Find(At("ff00::")), 2u);
  EXPECT_EQ(map.Find(At("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe")), 2u);
  EXPECT_EQ(map.Find(At("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")), 3u);
  EXPECT_TRUE(IpNetworkMap().empty());
  EXPECT_EQ(IpNetworkMap().Find(At("::")), std::nullopt);
}

// Small networks around few addresses, so that they nest, touch and repeat.
TEST(IpNetworkMap, AnswersLikeASearchThroughTheList) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<IpNetworkMap::Item> items;
    const IpAddress base =
        round % 2 == 0 ? IpAddress{UINT64_MAX, UINT64_MAX - 255} : IpAddress{7, UINT64_MAX - 127};
    const auto any = [&] {
      const uint64_t low = base.low + random() % 256;
      return IpAddress{base.high + (low < base.low ? 1 : 0), low};
    };
    for (uint32_t i = 0; i < 12; ++i) {
      const auto bits = static_cast<uint8_t>(119 + random() % 10);
      items.push_back({.network = NetworkOf(any(), bits), .value = i % 4});
    }
    const IpNetworkMap map(items);
    for (int i = 0; i < 256; ++i) {
      const IpAddress address = any();
      int longest = -1;
      std::vector<uint32_t> values;  // of the longest prefix
      for (const IpNetworkMap::Item& item : items) {
        if (!item.network.Contains(address)) continue;
        if (item.network.prefix_bits > longest) values.clear();
        longest = std::max<int>(longest, item.network.prefix_bits);
        if (item.network.prefix_bits == longest) values.push_back(item.value);
      }
      const std::optional<uint32_t> found = map.Find(address);
      ASSERT_EQ(found.has_value(), longest >= 0);
      if (found) {
        ASSERT_NE(std::find(values.begin(), values.end(), *found), values.end());
      }
    }
  }
}

}  // namespace ip_network_map_test
}  // namespace headgate::base
