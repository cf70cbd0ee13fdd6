#include "headgate/mapping/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace hints_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ProblemsOf(std::string_view text) { return rule::Describe(Load(text).problems); }

constexpr std::string_view kHead = "trusted_proxies: [127.0.0.1]\noriginal_request: x-original\n";

std::string ProblemsBehindHead(std::string_view rest) {
  return ProblemsOf(std::string(kHead) + std::string(rest));
}

std::string ProblemsOfEntry(std::string_view entry) {
  return ProblemsBehindHead("mappings:\n- descriptors: [{entries: [{key: k, " + std::string(entry) +
                            "}]}]\n");
}

// rule/read/document_test.cc has the others.
TEST(Hints, ForTextThatIsNotYaml) {
  EXPECT_THAT(ProblemsOfEntry("client_address:true"), HasSubstr("a space is missing"));
  EXPECT_THAT(ProblemsOf("trusted_proxies: [127.0.0.1, ::1]\nmappings: []\n"),
              HasSubstr("needs quotes: \"::1\""));
  EXPECT_THAT(ProblemsBehindHead("mappings:\n- host: [a, *.b.c]\n"),
              HasSubstr("a text that begins with * needs quotes"));
  EXPECT_THAT(ProblemsOfEntry("client_address:"),
              HasSubstr("write a space and a value behind the colon"));
}

TEST(Hints, ForTypographicQuotes) {
  for (const std::string_view text :
       {"mappings:\n- path: \u201c/login\u201d\n", "domain: \u2018edge\u2019\nmappings: []\n"})
    EXPECT_THAT(ProblemsBehindHead(text), HasSubstr("write straight quotes"));
  EXPECT_THAT(ProblemsOfEntry("header: \u201eX\u201c"), HasSubstr("write straight quotes"));
}

TEST(Hints, ForProxiesThatAreTrusted) {
  EXPECT_THAT(ProblemsOf("trusted_proxies: []\nmappings: []\n"),
              AllOf(HasSubstr("trusted_proxies is empty: nobody would be answered"),
                    HasSubstr("trusted_proxies: [127.0.0.1"), Not(HasSubstr("leave it out"))));
  const auto of_proxy = [](std::string_view proxy) {
    return ProblemsOf("trusted_proxies: [\"" + std::string(proxy) + "\"]\nmappings: []\n");
  };
  EXPECT_THAT(of_proxy("10.0.0.1/8"), HasSubstr("is 10.0.0.0/8; the address alone is 10.0.0.1"));
  EXPECT_THAT(of_proxy("2001:db8::1/32"), HasSubstr("is 2001:db8::/32;"));
  EXPECT_THAT(of_proxy("localhost"), HasSubstr("localhost is 127.0.0.1"));
  EXPECT_THAT(of_proxy("proxy.internal"), HasSubstr("names are not resolved"));
  EXPECT_THAT(of_proxy("*"), HasSubstr("name the networks of your proxies"));
  for (const std::string_view proxy :
       {"10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "2001:db8::/129", "1/"})
    EXPECT_THAT(of_proxy(proxy), HasSubstr("a network is written 10.0.0.0/8")) << proxy;
}

TEST(Hints, ForWordsOfOthers) {
  for (const std::string_view word : {"ip", "remote_address", "client_ip", "remote_addr"}) {
    EXPECT_THAT(ProblemsOfEntry(std::string(word) + ": true"),
                AllOf(HasSubstr("client_address: true"), Not(HasSubstr("exactly one attribute"))));
  }
  EXPECT_THAT(ProblemsOfEntry("query_param: q"), HasSubstr("query: NAME"));
  EXPECT_THAT(ProblemsOfEntry("headr: q"), HasSubstr("did you mean 'header'?"));
  EXPECT_THAT(ProblemsOfEntry("value: a, header: b"), HasSubstr("exactly one attribute"));
  EXPECT_THAT(ProblemsBehindHead("mappings:\n- descriptors: [{entries: [{key: k}]}]\n"),
              HasSubstr("exactly one attribute"));
}

TEST(Hints, ForAConditionAtThePlaceOfAnAttribute) {
  EXPECT_THAT(
      ProblemsOfEntry("path: /login"),
      AllOf(HasSubstr("write path: true; to choose requests, write path beside descriptors"),
            Not(HasSubstr("path: false"))));
  EXPECT_THAT(ProblemsOfEntry("client_address: 1.2.3.4"),
              HasSubstr("write client_address: true\n"));
}

TEST(Hints, ForTwoMappingsThatFitTheSame) {
  EXPECT_THAT(ProblemsBehindHead("mappings:\n- name: a\n- name: b\n"),
              AllOf(HasSubstr("both fit the same requests"), Not(HasSubstr("move this one"))));
  EXPECT_THAT(ProblemsBehindHead("mappings:\n- name: a\n- path: /b\n"),
              HasSubstr("move this one before 'a'"));
}

TEST(Hints, ForKeysOfTokens) {
  const auto of_issuer = [](std::string_view issuer) {
    return ProblemsBehindHead("jwt: [{" + std::string(issuer) + "}]\nmappings: []\n");
  };
  EXPECT_THAT(of_issuer("issuer: x"),
              AllOf(HasSubstr("jwks_file: keys.json"), Not(HasSubstr("unverified"))));
  EXPECT_THAT(of_issuer("jwks_uri: \"https://a/b\""), HasSubstr("keys are not fetched"));
  EXPECT_THAT(of_issuer("jwks_file: \"https://a/b\""),
              AllOf(HasSubstr("keys are not fetched"), HasSubstr("curl -o")));
  EXPECT_THAT(of_issuer("unverified: true, jwks_file: k"), HasSubstr("leave out unverified"));
}

TEST(Hints, ForAFileOfRules) {
  EXPECT_THAT(ProblemsOf("domain: edge\ndescriptors:\n- key: a\n"),
              AllOf(HasSubstr("this is a file of rules"), HasSubstr("--rules"),
                    Not(HasSubstr("trusted_proxies is missing"))));
}

TEST(Hints, ForAClaimWithADot) {
  const auto warnings = [](std::string_view claim) {
    const LoadedMappings loaded = Load(
        "trusted_proxies: [127.0.0.1]\njwt: [{unverified: true}]\nmappings:\n"
        "- descriptors: [{entries: [{key: k, claim: " +
        std::string(claim) + "}]}]\n");
    return rule::Describe(loaded.warnings);
  };
  EXPECT_THAT(warnings("app.plan"), HasSubstr("claim: [app, plan]"));
  EXPECT_EQ(warnings("[app, plan]"), "");
  EXPECT_EQ(warnings("\"https://example.com/plan\""), "");
}

}  // namespace hints_test
}  // namespace headgate::mapping
