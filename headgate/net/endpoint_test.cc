#include "headgate/net/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::net {
namespace endpoint_test {

using Kind = Endpoint::Kind;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto endpoint = ParseEndpoint(text);
  return endpoint.ok() ? "" : std::string(endpoint.status().message());
}

TEST(Endpoint, ReadsEveryForm) {
  EXPECT_EQ(*ParseEndpoint("127.0.0.1:8080"), (Endpoint{Kind::kIpv4, "127.0.0.1", 8080}));
  EXPECT_EQ(*ParseEndpoint("0.0.0.0:0"), (Endpoint{Kind::kIpv4, "0.0.0.0", 0}));
  EXPECT_EQ(*ParseEndpoint(":8080"), (Endpoint{Kind::kAllInterfaces, "", 8080}));
  EXPECT_EQ(*ParseEndpoint("[::1]:65535"), (Endpoint{Kind::kIpv6, "::1", 65535}));
  EXPECT_EQ(*ParseEndpoint("localhost:80"), (Endpoint{Kind::kLocalhost, "", 80}));
  EXPECT_EQ(*ParseEndpoint("unix:/run/headgate.sock"),
            (Endpoint{Kind::kUnix, "/run/headgate.sock", 0}));
  EXPECT_EQ(*ParseEndpoint("unix:relative:path"), (Endpoint{Kind::kUnix, "relative:path", 0}));
}

TEST(Endpoint, SpellsIpv6AsTheSystemDoes) {
  EXPECT_EQ(ParseEndpoint("[2001:DB8:0:0::1]:1")->address, "2001:db8::1");
}

TEST(Endpoint, PrintsWhatItReads) {
  for (const char* text :
       {"127.0.0.1:8080", ":8080", "[::1]:1", "localhost:80", "unix:/run/headgate.sock"}) {
    EXPECT_EQ(ParseEndpoint(text)->ToString(), text);
  }
}

TEST(Endpoint, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("8080"), "address '8080': the port is missing");
  EXPECT_THAT(ErrorOf(""), HasSubstr("the port is missing"));
  EXPECT_THAT(ErrorOf("127.0.0.1:"), HasSubstr("'' is not a port (0 to 65535)"));
  EXPECT_THAT(ErrorOf("127.0.0.1:65536"), HasSubstr("'65536' is not a port"));
  EXPECT_THAT(ErrorOf("127.0.0.1:-1"), HasSubstr("'-1' is not a port"));
  EXPECT_THAT(ErrorOf("127.0.0.1:80x"), HasSubstr("'80x' is not a port"));
  EXPECT_THAT(ErrorOf("127.0.0:80"),
              HasSubstr("'127.0.0' is not an IPv4 address, and host names are not resolved"));
  EXPECT_THAT(ErrorOf("example.com:80"), HasSubstr("host names are not resolved"));
  EXPECT_THAT(ErrorOf("::1:80"), HasSubstr("an IPv6 address goes in square brackets"));
  EXPECT_EQ(ErrorOf("[::1]"), "address '[::1]': the port is missing");
  EXPECT_EQ(ErrorOf("tcp://127.0.0.1:80"),
            "address 'tcp://127.0.0.1:80': an address has no scheme: leave out 'tcp://'");
  EXPECT_THAT(ErrorOf("[::1:80"), HasSubstr("the ']' is missing"));
  EXPECT_THAT(ErrorOf("[::g]:80"), HasSubstr("'[::g]' is not an IPv6 address"));
  EXPECT_THAT(ErrorOf("unix:"), HasSubstr("the path of the Unix socket is missing"));
  EXPECT_THAT(ErrorOf("unix:" + std::string(108, 'x')),
              HasSubstr("the path has 108 bytes; the system takes at most 107"));
  EXPECT_THAT(ErrorOf(std::string("unix:a\0b", 8)), HasSubstr("NUL"));
}

TEST(Endpoint, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(ParseEndpoint("127.9.9.9:1")->loopback());
  EXPECT_TRUE(ParseEndpoint("[::1]:1")->loopback());
  EXPECT_TRUE(ParseEndpoint("localhost:1")->loopback());
  EXPECT_TRUE(ParseEndpoint("unix:x")->loopback());
  EXPECT_FALSE(ParseEndpoint(":1")->loopback());
  EXPECT_FALSE(ParseEndpoint("0.0.0.0:1")->loopback());
  EXPECT_FALSE(ParseEndpoint("10.0.0.1:1")->loopback());
  EXPECT_FALSE(ParseEndpoint("[::]:1")->loopback());
}

}  // namespace endpoint_test
}  // namespace headgate::net
