#include "headgate/http/known_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::http {
namespace known_hosts_test {

TEST(KnownHosts, AddressesAndLocalhostAreAlwaysKnown) {
  const KnownHosts hosts;
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:8080", "10.1.2.3:80", "255.255.255.255", "[::1]", "[::1]:8080",
        "[fe80::1]:65535", "[::ffff:1.2.3.4]", "localhost", "localhost:8080", "LocalHost",
        "localhost.", "app.localhost:80", "127.0.0.1:"}) {
    EXPECT_TRUE(hosts.Knows(host)) << host;
  }
}

TEST(KnownHosts, NamesThatNobodyConfiguredAreNot) {
  const KnownHosts hosts;
  for (const char* host : {"",
                           ":8080",
                           "example.com",
                           "example.com:8080",
                           "notlocalhost",
                           "localhost.example.com",
                           "127.0.0.1.example.com",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "1.2.3.",
                           "1..2.3",
                           "0001.2.3.4",
                           "1.2.3.4:80:80",
                           "localhost:http",
                           "localhost:123456",
                           "[::1",
                           "[::1]x",
                           "[::1]:x",
                           "[]",
                           "[example.com]",
                           "[::1]example.com"}) {
    EXPECT_FALSE(hosts.Knows(host)) << host;
  }
}

TEST(KnownHosts, ConfiguredNamesAreKnownInAnyCaseAndOnAnyPort) {
  const KnownHosts hosts({"limits.example.com", "headgate"});
  for (const char* host :
       {"limits.example.com", "LIMITS.Example.Com:8080", "limits.example.com.", "headgate:1"}) {
    EXPECT_TRUE(hosts.Knows(host)) << host;
  }
  EXPECT_FALSE(hosts.Knows("example.com"));
  EXPECT_FALSE(hosts.Knows("x.limits.example.com"));
}

TEST(KnownHosts, AStarKnowsEveryName) {
  EXPECT_TRUE(KnownHosts({"*"}).Knows("anything.example:99"));
}

TEST(KnownHosts, AStarAndADotKnowEveryNameBelow) {
  const KnownHosts hosts({"*.example.com"});
  for (const char* host : {"a.example.com", "A.B.Example.Com:8080", "a.example.com."}) {
    EXPECT_TRUE(hosts.Knows(host)) << host;
  }
  for (const char* host :
       {"example.com", ".example.com", "aexample.com", "a.example.com.evil.net", "a.example.org"}) {
    EXPECT_FALSE(hosts.Knows(host)) << host;
  }
}

TEST(KnownHosts, NamesThatCouldNeverMatchAreRefused) {
  for (const char* name : {"*", "example.com", "*.example.com", "head_gate"}) {
    EXPECT_TRUE(KnownHosts::Check(name).ok()) << name;
  }
  for (const char* name : {"", "*.", "a*.example.com", "*example.com", "a.*.com", "example.com:80",
                           "http://example.com"}) {
    EXPECT_FALSE(KnownHosts::Check(name).ok()) << name;
  }
}

}  // namespace known_hosts_test
}  // namespace headgate::http
