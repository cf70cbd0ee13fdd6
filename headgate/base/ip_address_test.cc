#include "headgate/base/ip_address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/ip_network_set.h"
#include "headgate/base/random.h"

namespace headgate::base {
namespace ip_address_test {

IpAddress Address(std::string_view text) {
  const auto address = ParseIpAddress(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(IpAddress{});
}

TEST(IpAddress, ReadsBothKindsAndWritesTheShortestForm) {
  EXPECT_EQ(ToString(Address("192.0.2.1")), "192.0.2.1");
  EXPECT_EQ(ToString(Address("2001:DB8:0:0:0:0:0:1")), "2001:db8::1");
  EXPECT_EQ(ToString(Address("::")), "::");
  EXPECT_EQ(Address("1.2.3.4"), IpAddress::FromV4(0x01020304));
}

TEST(IpAddress, AMappedIpv4AddressIsTheIpv4Address) {
  EXPECT_EQ(Address("::ffff:192.0.2.1"), Address("192.0.2.1"));
  EXPECT_EQ(Address("::FFFF:c000:201"), Address("192.0.2.1"));
  EXPECT_NE(Address("::192.0.2.1"), Address("192.0.2.1"));
}

TEST(IpAddress, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "1.2.3.4:80", "[::1]", "::1%eth0",
        " 1.2.3.4", "1.2.3.4 ", "1:2:3:4:5:6:7:8:9", ":::", "unknown", "0x1.2.3.4"}) {
    EXPECT_FALSE(ParseIpAddress(text)) << text;
  }
  EXPECT_FALSE(ParseIpAddress(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(ParseIpAddress(std::string(1000, '1')));
}

TEST(IpNetwork, ContainsTheAddressesBetweenItsEnds) {
  const auto network = ParseIpNetwork("10.1.0.0/16");
  ASSERT_TRUE(network);
  EXPECT_TRUE(network->Contains(Address("10.1.0.0")));
  EXPECT_TRUE(network->Contains(Address("10.1.255.255")));
  EXPECT_FALSE(network->Contains(Address("10.2.0.0")));
  EXPECT_FALSE(network->Contains(Address("10.0.255.255")));
  EXPECT_TRUE(ParseIpNetwork("0.0.0.0/0")->Contains(Address("255.255.255.255")));
  EXPECT_FALSE(ParseIpNetwork("0.0.0.0/0")->Contains(Address("::1")));
  EXPECT_TRUE(ParseIpNetwork("::/0")->Contains(Address("1.2.3.4")));
}

TEST(IpNetwork, AnAddressAloneIsANetworkOfOne) {
  const auto network = ParseIpNetwork("2001:db8::7");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->prefix_bits, 128);
  EXPECT_EQ(network->last(), Address("2001:db8::7"));
}

TEST(IpNetwork, RefusesBitsBehindThePrefixAndImpossiblePrefixes) {
  for (const std::string_view text :
       {"10.0.0.1/8", "10.0.0.0/33", "::1/64", "::/129", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1",
        "10.0.0.0/+8", "10.0.0.0/8 ", "/8", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(ParseIpNetwork(text)) << text;
  }
}

TEST(IpNetwork, WritesWhatItReads) {
  for (const std::string_view text : {"10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/32",
                                      "192.0.2.1", "2001:db8::1", "::ffff:0.0.0.0/95"}) {
    const auto network = ParseIpNetwork(text);
    if (text.ends_with("/95")) {
      EXPECT_FALSE(network) << "bit 96 is set";
      continue;
    }
    ASSERT_TRUE(network) << text;
    std::string written;
    AppendIpNetwork(*network, written);
    EXPECT_EQ(written, text);
  }
}

TEST(IpNetworkSet, AnswersLikeASearchThroughTheList) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<IpNetwork> networks;
    for (uint64_t i = random.Below(12); i > 0; --i) {
      const auto bits = static_cast<uint8_t>(120 + random.Below(9));
      networks.push_back(
          NetworkOf(IpAddress::FromV4(static_cast<uint32_t>(random.Below(512))), bits));
    }
    const IpNetworkSet set(networks);
    for (uint32_t value = 0; value < 520; ++value) {
      const IpAddress address = IpAddress::FromV4(value);
      bool expected = false;
      for (const IpNetwork& network : networks) expected = expected || network.Contains(address);
      ASSERT_EQ(set.Contains(address), expected) << "round " << round << ", address " << value;
    }
  }
}

TEST(IpNetworkSet, AnEmptySetContainsNothing) {
  EXPECT_FALSE(IpNetworkSet().Contains(Address("::")));
  EXPECT_TRUE(IpNetworkSet().empty());
}

TEST(IpNetworkSet, ContainsTheFirstAndTheLastAddress) {
  const IpNetworkSet set({*ParseIpNetwork("::/0")});
  EXPECT_TRUE(set.Contains(Address("::")));
  EXPECT_TRUE(set.Contains(Address("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")));
}

}  // namespace ip_address_test
}  // namespace headgate::base
