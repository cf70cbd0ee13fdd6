#include "headgate/mapping/network_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace network_lists_test {

using ::testing::HasSubstr;

constexpr std::string_view kFile = R"(
trusted_proxies: [127.0.0.1]
networks:
- {name: office, networks: [198.51.100.0/24, "2001:db8:1::/48"]}
- {name: desk, networks: [198.51.100.7]}
- {name: clouds, networks_file: clouds.txt}
mappings:
- descriptors:
  - entries: [{key: network, network: true, otherwise: internet}]
)";
const Files kClouds = {{"clouds.txt",
                        "# the clouds\n203.0.113.0/25\n203.0.113.128/25  east\n"
                        "192.0.2.0/24\t west one # of two\n64:ff9b::c612:0/112 translated\n"}};

struct NetworkRig : MappingRig {
  using MappingRig::MappingRig;
  // The descriptors of the client at this address.
  std::string At(std::string_view address) {
    const std::vector<HeaderField> fields = {{"X-Forwarded-For", address}};
    return Map({.fields = fields, .peer = Ip("127.0.0.1")});
  }
};

TEST(Networks, GiveTheNameOfTheLongestPrefix) {
  NetworkRig rig(kFile, kClouds);
  EXPECT_EQ(rig.At("198.51.100.1"), "network=office");
  EXPECT_EQ(rig.At("198.51.100.7"), "network=desk");
  EXPECT_EQ(rig.At("198.51.101.1"), "network=internet");
  EXPECT_EQ(rig.At("2001:db8:1:ffff::1"), "network=office") << "not only the client's /64";
  EXPECT_EQ(rig.At("2001:db8:2::1"), "network=internet");
}

TEST(Networks, MayHaveNamesOfTheirOwnInAFile) {
  NetworkRig rig(kFile, kClouds);
  EXPECT_EQ(rig.At("203.0.113.1"), "network=clouds");
  EXPECT_EQ(rig.At("203.0.113.200"), "network=east");
  EXPECT_EQ(rig.At("192.0.2.9"), "network=west one");
}

TEST(Networks, TakeTheIPv4AddressInsideOfAnotherOne) {
  NetworkRig rig(kFile, kClouds);
  EXPECT_EQ(rig.At("::ffff:198.51.100.1"), "network=office");
  EXPECT_EQ(rig.At("64:ff9b::198.51.100.7"), "network=desk");
  EXPECT_EQ(rig.At("2002:c633:6401::1"), "network=office") << "6to4";
  EXPECT_EQ(rig.At("64:ff9b::c612:1"), "network=translated") << "a list in the form that was sent";
}

TEST(Networks, OfSomeListsAreATableOfTheirOwn) {
  NetworkRig rig(R"(
trusted_proxies: [127.0.0.1]
networks:
- {name: all, networks: [0.0.0.0/0]}
- {name: a, networks: [192.0.2.0/24]}
- {name: b, networks: [192.0.2.128/25]}
mappings:
- descriptors:
  - entries: [{key: a, network: a, otherwise: none}, {key: ab, network: [b, a], otherwise: none},
              {key: any, network: true}]
)");
  EXPECT_EQ(rig.At("192.0.2.200"), "a=a,ab=b,any=b");
  EXPECT_EQ(rig.At("192.0.2.1"), "a=a,ab=a,any=a");
  EXPECT_EQ(rig.At("198.51.100.1"), "a=none,ab=none,any=all");
}

TEST(Networks, OfNoClientAreMissing) {
  NetworkRig rig(kFile, kClouds);
  EXPECT_EQ(rig.Map({.peer = Ip("127.0.0.1")}), "missing network") << "nobody is not otherwise";
  EXPECT_EQ(rig.At("unknown"), "invalid network");
  NetworkRig strict(R"(
trusted_proxies: [127.0.0.1]
networks: [{name: office, networks: [192.0.2.0/24]}]
mappings:
- descriptors:
  - {entries: [{key: network, network: office}], optional: true}
)");
  EXPECT_EQ(strict.At("192.0.2.1"), "network=office");
  EXPECT_EQ(strict.At("198.51.100.1"), "") << "it has no descriptor";
}

TEST(Networks, CanBeRefusedAndExempt) {
  NetworkRig rig(R"(
trusted_proxies: [127.0.0.1]
networks:
- {name: office, networks: [192.0.2.0/24]}
- {name: bad, networks: [203.0.113.0/24]}
mappings:
- refuse: [{network: true, values: [bad]}]
  exempt: [{network: true, values: [office]}]
  descriptors: [{entries: [{key: all, value: x}]}]
)");
  EXPECT_EQ(rig.At("192.0.2.1"), "exempt");
  EXPECT_EQ(rig.At("203.0.113.1"), "refused");
  EXPECT_EQ(rig.At("64:ff9b::203.0.113.1"), "refused");
  EXPECT_EQ(rig.At("198.51.100.1"), "all=x");
  EXPECT_EQ(rig.Map({.peer = Ip("127.0.0.1")}), "missing an attribute of a list")
      << "nobody slips past by hiding the address";
}

// ---- Problems of the file

std::string ProblemsOf(std::string_view text, const Files& files = {}) {
  std::string all;
  for (const rule::Problem& problem : Load(text, files).problems) all += Describe(problem) + "\n";
  return all;
}
std::string With(std::string_view networks, std::string_view attribute = "network: true") {
  return fmt::format(
      "trusted_proxies: [127.0.0.1]\nnetworks: {}\nmappings:\n- descriptors:\n"
      "  - entries: [{{key: n, {}}}]\n",
      networks, attribute);
}

TEST(NetworksOfAFile, HaveTheirProblemsReported) {
  EXPECT_THAT(ProblemsOf(With("[{networks: [10.0.0.0/8]}]")), HasSubstr("has no name"));
  EXPECT_THAT(ProblemsOf(With("[{name: a}]")), HasSubstr("'a' has no networks"));
  EXPECT_THAT(ProblemsOf(With("[{name: \"true\", networks: [10.0.0.0/8]}]")),
              HasSubstr("'true' cannot be the name of a list"));
  EXPECT_THAT(ProblemsOf(With("[{name: a, networks: [10.0.0.1/8]}]")),
              HasSubstr("the network of this address is 10.0.0.0/8"));
  EXPECT_THAT(
      ProblemsOf(With("[{name: a, networks: [10.0.0.0/8]}, {name: a, networks: [192.0.2.1]}]")),
      HasSubstr("or is that of another one"));
  EXPECT_THAT(ProblemsOf(With("[{name: a, networks_file: f}]"), {{"f", "\n10.0.0.0/33 x\n"}}),
              HasSubstr("line 2 of 'f': '10.0.0.0/33' is not a network"));
}

TEST(NetworksOfAFile, MayNotHaveTwoNames) {
  const std::string two =
      "[{name: a, networks: [10.0.0.0/8]}, {name: b, networks: [\"::ffff:10.0.0.0/104\"]}]";
  EXPECT_THAT(ProblemsOf(With(two)),
              HasSubstr("10.0.0.0/8 has two names in these lists: 'a' and 'b'"));
  EXPECT_EQ(ProblemsOf(With(two, "network: a")), "") << "the other list is not asked";
  EXPECT_EQ(ProblemsOf(With("[{name: a, networks: [10.0.0.0/8, 10.0.0.0/8]}]")), "");
}

TEST(NetworksOfAFile, AreNamedByTheirAttributes) {
  EXPECT_THAT(ProblemsOf("trusted_proxies: [127.0.0.1]\nmappings:\n- descriptors:\n"
                         "  - entries: [{key: n, network: true}]\n"),
              HasSubstr("the file has no networks"));
  const std::string one = "[{name: a, networks: [10.0.0.0/8]}]";
  EXPECT_THAT(ProblemsOf(With(one, "network: [a, b]")),
              HasSubstr("no item of networks has the name 'b'"));
  EXPECT_THAT(ProblemsOf(With(one, "header: X-A, otherwise: x")),
              HasSubstr("otherwise does not apply to header"));
  EXPECT_THAT(ProblemsOf("trusted_proxies: [127.0.0.1]\nnetworks: " + one +
                         "\nmappings:\n- exempt: [{network: true, values: [a, office]}]\n"),
              HasSubstr("no network has the name 'office'"));
}

TEST(NetworksOfAFile, AreWarnedAboutIfOthersAreRefused) {
  const auto warnings = [](std::string_view attribute) {
    std::string all;
    for (const rule::Problem& problem :
         Load(With("[{name: a, networks: [10.0.0.0/8]}]", attribute)).warnings)
      all += problem.message;
    return all;
  };
  EXPECT_THAT(warnings("network: true"), HasSubstr("clients in none of the networks are refused"));
  EXPECT_EQ(warnings("network: true, otherwise: x"), "");
}

TEST(NetworksOfAFile, HaveABound) {
  NetworkLists lists;
  ASSERT_TRUE(lists.AddList("a"));
  const base::IpNetwork network = *base::ParseIpNetwork("10.0.0.0/8");
  for (size_t i = 0; i < NetworkLists::kNetworksMax; ++i) ASSERT_TRUE(lists.Add(network, "", {}));
  EXPECT_FALSE(lists.Add(network, "", {}));
}

TEST(NetworksOfAFile, AreFollowed) {
  EXPECT_THAT(Load(kFile, kClouds).files, ::testing::ElementsAre("clouds.txt"));
}

}  // namespace network_lists_test
}  // namespace headgate::mapping
