#include "headgate/mapping/client_address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace client_address_test {

ClientAddressOptions Trusting(std::vector<std::string_view> networks) {
  std::vector<base::IpNetwork> parsed;
  for (const std::string_view network : networks) parsed.push_back(*base::ParseIpNetwork(network));
  return {.trusted_proxies = base::IpNetworkSet(std::move(parsed))};
}

std::string Client(const ClientAddressOptions& options, std::vector<HeaderField> fields,
                   std::optional<base::IpAddress> stated = std::nullopt) {
  const ClientAddress client =
      FindClientAddress({.fields = fields, .peer = Ip("10.0.0.1"), .client = stated}, options);
  if (client.address) return base::ToString(*client.address);
  return client.problem == ClientAddressProblem::kMissing ? "missing" : "invalid";
}

const ClientAddressOptions kOurs = Trusting({"10.0.0.0/8"});

TEST(ClientAddress, ForwardingHeadersThatNoProxyWroteDoNotCount) {
  const std::vector<HeaderField> fields = {{"X-Forwarded-For", "203.0.113.7"}};
  const ClientAddress of_unix = FindClientAddress({.fields = fields, .is_forwarded = false}, kOurs);
  EXPECT_FALSE(of_unix.address);
  EXPECT_EQ(of_unix.problem, ClientAddressProblem::kMissing);
  const ClientAddress of_peer =
      FindClientAddress({.fields = fields, .client = Ip("10.0.0.2"), .is_forwarded = false}, kOurs);
  EXPECT_EQ(of_peer.address, Ip("10.0.0.2"));
}

TEST(ClientAddress, IsTheFirstFromTheRightThatIsNotTrusted) {
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "203.0.113.7"}}), "203.0.113.7");
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "6.6.6.6, 203.0.113.7, 10.0.0.2"}}), "203.0.113.7");
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "6.6.6.6"}, {"x-forwarded-for", "203.0.113.7"}}),
            "203.0.113.7")
      << "HAProxy adds a line of its own";
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}}), "10.0.0.3")
      << "a client inside the trusted networks";
}

TEST(ClientAddress, WhatTheClientWroteIsNotRead) {
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "rubbish, unknown, 203.0.113.7"}}), "203.0.113.7");
}

TEST(ClientAddress, AMemberThatIsNeededAndIsNoAddressIsInvalid) {
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "203.0.113.7, unknown"}}), "invalid");
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "203.0.113.7, rubbish, 10.0.0.2"}}), "invalid");
}

TEST(ClientAddress, WithoutTheHeaderIsMissing) {
  EXPECT_EQ(Client(kOurs, {}), "missing");
  EXPECT_EQ(Client(kOurs, {{"Forwarded", "for=203.0.113.7"}}), "missing");
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", ""}}), "missing");
}

TEST(ClientAddress, CountsHopsWhateverTheAddresses) {
  ClientAddressOptions options = kOurs;
  options.trusted_hops = 2;
  EXPECT_EQ(Client(options, {{"X-Forwarded-For", "6.6.6.6, 203.0.113.7, 198.51.100.1"}}),
            "203.0.113.7");
  EXPECT_EQ(Client(options, {{"X-Forwarded-For", "203.0.113.7"}}), "203.0.113.7");
  EXPECT_EQ(Client(options, {{"X-Forwarded-For", "unknown, 203.0.113.7"}}), "invalid");
  EXPECT_EQ(Client(options, {{"X-Forwarded-For", "203.0.113.7, unknown"}}), "203.0.113.7");
}

TEST(ClientAddress, ReadsTheStandardHeaderIfItIsChosen) {
  ClientAddressOptions options = kOurs;
  options.header = ForwardingHeader::kForwarded;
  EXPECT_EQ(Client(options, {{"Forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:80\""}}),
            "2001:db8::1");
  EXPECT_EQ(Client(options, {{"Forwarded", "for=6.6.6.6, proto=https"}}), "invalid");
  EXPECT_EQ(Client(options, {{"Forwarded", "for=6.6.6.6;for=7.7.7.7"}}), "invalid");
  EXPECT_EQ(Client(options, {{"X-Forwarded-For", "6.6.6.6"}}), "missing");
}

TEST(ClientAddress, AnAddressThatTheProtocolStatesIsBelieved) {
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "6.6.6.6"}}, Ip("203.0.113.7")), "203.0.113.7");
  EXPECT_EQ(Client(kOurs, {{"X-Forwarded-For", "203.0.113.7"}}, Ip("10.0.0.5")), "203.0.113.7")
      << "another trusted proxy stands in front";
  EXPECT_EQ(Client(kOurs, {}, Ip("10.0.0.5")), "10.0.0.5");
  ClientAddressOptions none = kOurs;
  none.header = ForwardingHeader::kNone;
  EXPECT_EQ(Client(none, {{"X-Forwarded-For", "6.6.6.6"}}, Ip("10.0.0.5")), "10.0.0.5");
  EXPECT_EQ(Client(none, {{"X-Forwarded-For", "6.6.6.6"}}), "10.0.0.1") << "the peer";
}

// Whatever a client sends, and whichever trusted proxies append to it, the client's own address is
// found.
TEST(ClientAddress, NobodyOutsideTheTrustedNetworksCanChangeIt) {
  base::Random random(11);
  const std::vector<std::string> pieces = {"1.2.3.4", "10.0.0.9", "unknown", "",
                                           "::1",     "_x",       "[::1]:8", "\"",
                                           ";",       "=",        "rubbish", "10.0.0.1"};
  for (int round = 0; round < 20'000; ++round) {
    std::string forged;
    for (uint64_t i = random.Below(5); i > 0; --i)
      forged += pieces[random.Below(pieces.size())] + (random.Below(2) == 0 ? ", " : ",");
    std::string chain = forged + "203.0.113.7";
    for (uint64_t i = random.Below(4); i > 0; --i) chain += ", 10.0.0." + std::to_string(i);
    std::vector<HeaderField> fields;
    const std::string own_line = forged + "6.6.6.6";
    if (random.Below(2) == 0) fields.emplace_back("X-Forwarded-For", own_line);
    fields.emplace_back("X-Forwarded-For", chain);
    ASSERT_EQ(Client(kOurs, fields), "203.0.113.7") << chain;
  }
}

}  // namespace client_address_test
}  // namespace headgate::mapping
