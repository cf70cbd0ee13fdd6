#include "headgate/wire/forwarded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {
namespace forwarded_test {

using Syntax = ForwardedChain::Syntax;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The addresses of the chain; "-" for a member that names none, and "refused" alone.
std::vector<std::string> Read(Syntax syntax, const std::vector<std::string_view>& lines) {
  ForwardedChain chain;
  for (const std::string_view line : lines) {
    if (!chain.AddLine(syntax, line)) return {"refused"};
  }
  std::vector<std::string> addresses;
  for (size_t i = 0; i < chain.size(); ++i) {
    const auto address = chain.Address(i);
    addresses.push_back(address ? base::ToString(*address) : "-");
  }
  return addresses;
}

TEST(XForwardedFor, JoinsTheMembersOfAllLinesInOrder) {
  EXPECT_THAT(Read(Syntax::kXForwardedFor, {"1.1.1.1, 2.2.2.2", "3.3.3.3"}),
              ElementsAre("1.1.1.1", "2.2.2.2", "3.3.3.3"));
}

TEST(XForwardedFor, IgnoresPortsBracketsAndEmptyMembers) {
  EXPECT_THAT(Read(Syntax::kXForwardedFor,
                   {"1.1.1.1:80,, [2001:db8::1]:443 ,\t[::1],2001:db8::2, ::ffff:9.9.9.9"}),
              ElementsAre("1.1.1.1", "2001:db8::1", "::1", "2001:db8::2", "9.9.9.9"));
  EXPECT_THAT(Read(Syntax::kXForwardedFor, {"", " , "}), IsEmpty());
}

TEST(XForwardedFor, AMemberThatIsNoAddressKeepsItsPlace) {
  EXPECT_THAT(Read(Syntax::kXForwardedFor,
                   {"unknown, 01.1.1.1, \"1.1.1.1\", 1.1.1.1:x, [1.1.1.1], 1.1.1.1"}),
              ElementsAre("-", "-", "-", "-", "-", "1.1.1.1"));
}

// RFC 4007, section 11; RFC 6874 writes %25 in a URI.
TEST(XForwardedFor, IgnoresTheZoneOfAnIpv6Address) {
  EXPECT_THAT(Read(Syntax::kXForwardedFor,
                   {"fe80::1%eth0, [fe80::2%25en0]:443, fe80::3%2, 2001:db8::1%br-0.7"}),
              ElementsAre("fe80::1", "fe80::2", "fe80::3", "2001:db8::1"));
  EXPECT_THAT(Read(Syntax::kForwarded, {R"(for="[fe80::1%eth0]:80")"}), ElementsAre("fe80::1"));
  EXPECT_THAT(Read(Syntax::kXForwardedFor,
                   {"fe80::1%, fe80::1%a b, fe80::1%a/b, %eth0, 192.0.2.1%eth0, [fe80::1%eth0"}),
              ElementsAre("-", "-", "-", "-", "-", "-"));
}

TEST(XForwardedFor, RefusesAChainThatIsTooLong) {
  std::string line = "1.1.1.1";
  for (size_t i = 1; i < kForwardedMembersMax; ++i) line += ",1.1.1.1";
  EXPECT_EQ(Read(Syntax::kXForwardedFor, {line}).size(), kForwardedMembersMax);
  EXPECT_THAT(Read(Syntax::kXForwardedFor, {line, "1.1.1.1"}), ElementsAre("refused"));
}

TEST(Forwarded, ReadsTheExamplesOfTheRfc) {
  // RFC 7239, sections 4 and 6.
  EXPECT_THAT(Read(Syntax::kForwarded, {R"(for="_gazonk")"}), ElementsAre("-"));
  EXPECT_THAT(Read(Syntax::kForwarded, {R"(For="[2001:db8:cafe::17]:4711")"}),
              ElementsAre("2001:db8:cafe::17"));
  EXPECT_THAT(Read(Syntax::kForwarded, {"for=192.0.2.60;proto=http;by=203.0.113.43"}),
              ElementsAre("192.0.2.60"));
  EXPECT_THAT(Read(Syntax::kForwarded, {"for=192.0.2.43, for=198.51.100.17"}),
              ElementsAre("192.0.2.43", "198.51.100.17"));
  EXPECT_THAT(
      Read(Syntax::kForwarded, {R"(for=192.0.2.43, for="[2001:db8:cafe::17]", for=unknown)"}),
      ElementsAre("192.0.2.43", "2001:db8:cafe::17", "-"));
}

TEST(Forwarded, QuotedStringsMayHoldSeparators) {
  EXPECT_THAT(Read(Syntax::kForwarded,
                   {R"(by="a,b;c\"d";for=1.1.1.1 ; host="x, for=9.9.9.9", for=2.2.2.2)"}),
              ElementsAre("1.1.1.1", "2.2.2.2"));
}

TEST(Forwarded, AMemberWithoutForKeepsItsPlace) {
  EXPECT_THAT(Read(Syntax::kForwarded, {"proto=https, for=1.1.1.1", ";;, ,"}),
              ElementsAre("-", "1.1.1.1"));
}

TEST(Forwarded, RefusesWhatReadersUnderstandDifferently) {
  for (const std::string_view line :
       {R"(for="1.1.1.1)", "for=1.1.1.1;for=2.2.2.2", "for", "for=", "for =1.1.1.1",
        "for=1.1.1.1 for=2.2.2.2", R"(for="1.1.1.1"x)", R"(for=a"b")"}) {
    EXPECT_THAT(Read(Syntax::kForwarded, {line}), ElementsAre("refused")) << line;
  }
}

TEST(ForwardedAddress, TakesHiddenPortsAndRefusesOthers) {
  EXPECT_TRUE(ParseForwardedAddress("192.0.2.1:_port-7"));
  for (const std::string_view text : {"192.0.2.1:", "192.0.2.1:123456", "[::1]80", "[::1",
                                      "[::1]:", "192.0.2.1:8 0", "[]", ":80", "_hidden"}) {
    EXPECT_FALSE(ParseForwardedAddress(text)) << text;
  }
}

}  // namespace forwarded_test
}  // namespace headgate::wire
