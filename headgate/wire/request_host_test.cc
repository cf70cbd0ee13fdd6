#include "headgate/wire/request_host.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace headgate::wire {
namespace request_host_test {

std::string Normalized(std::string_view text) {
  std::string host;
  return NormalizeHost(text, host) ? host : "<refused>";
}

TEST(NormalizeHost, IsInLowerCaseWithoutPortAndFinalDot) {
  for (const auto& [text, expected] : {std::pair<std::string_view, std::string_view>{"a", "a"},
                                       {"Admin.Example.COM", "admin.example.com"},
                                       {"admin.example.com:8443", "admin.example.com"},
                                       {"admin.example.com:", "admin.example.com"},
                                       {"admin.example.com.", "admin.example.com"},
                                       {"admin.example.com.:80", "admin.example.com"},
                                       {"my_service-1", "my_service-1"},
                                       {"192.0.2.1:80", "192.0.2.1"},
                                       {"1.a", "1.a"},
                                       {"a.0xy", "a.0xy"},
                                       {"[::1]", "[::1]"},
                                       {"[::1]:80", "[::1]"},
                                       {"[::1]:", "[::1]"},
                                       {"[2001:DB8:0:0::1]:80", "[2001:db8::1]"}}) {
    EXPECT_EQ(Normalized(text), expected) << text;
  }
}

TEST(NormalizeHost, RefusesWhatIsNotAHostAndAPort) {
  for (const std::string_view text : {"",
                                      ".",
                                      "..",
                                      ":80",
                                      "a..b",
                                      ".a",
                                      "a..",
                                      "a:80:80",
                                      "a:80:x",
                                      "a:80:",
                                      "a::",
                                      "a:]",
                                      "a:x",
                                      "a:-1",
                                      "a:+80",
                                      "a: 80",
                                      "a b",
                                      "a, b",
                                      "x@a",
                                      "a:80@x",
                                      "a/",
                                      "a/x",
                                      "a#",
                                      "a?",
                                      "a\\",
                                      "a\t",
                                      "\xc3\xa9",
                                      "%61",
                                      "a%",
                                      "[a]",
                                      "[::1",
                                      "[::1]x",
                                      "[::1]:x",
                                      "[::1]:80:80",
                                      "[::1]]",
                                      "[1.2.3.4]",
                                      "[fe80::1%25eth0]",
                                      "[v1.x]",
                                      "[]",
                                      "::1",
                                      "a]",
                                      "a,b",
                                      "x*y",
                                      "127.1",
                                      "127.1.",
                                      "1",
                                      "0x7f.0.0.1",
                                      "a.0x7F",
                                      "192.0.2.256",
                                      "192.0.2.01",
                                      "[",
                                      "]"}) {
    EXPECT_EQ(Normalized(text), "<refused>") << text;
  }
}

TEST(NormalizeHost, TheResultIsNormalized) {
  for (const std::string_view text : {"A.b.:1", "[2001:DB8::0:1]:1"})
    EXPECT_EQ(Normalized(Normalized(text)), Normalized(text));
}

}  // namespace request_host_test
}  // namespace headgate::wire
