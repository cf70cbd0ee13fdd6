#include "headgate/wire/credentials.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace headgate::wire {
namespace credentials_test {

std::string Canonical(std::string_view value) {
  std::string out;
  return CanonicalCredentials(value, out) ? out : "<refused>";
}

std::string Bearer(std::string_view value) {
  std::string_view token;
  const Lookup lookup = BearerOf(value, token);
  if (lookup == Lookup::kFound) return std::string(token);
  return lookup == Lookup::kAbsent ? "<absent>" : "<invalid>";
}

TEST(Credentials, AreTheValuesOfTwoHeaders) {
  EXPECT_TRUE(HasCredentials("authorization"));
  EXPECT_TRUE(HasCredentials("Proxy-Authorization"));
  EXPECT_FALSE(HasCredentials("X-Authorization"));
}

TEST(Credentials, HaveOneFormForAllSpellingsOfTheScheme) {
  for (const std::string_view value :
       {"Bearer k1", "bearer k1", "BEARER k1", "Bearer  k1", "Bearer\tk1", " Bearer \t k1 "})
    EXPECT_EQ(Canonical(value), "Bearer k1") << value;
  EXPECT_EQ(Canonical("basic  azpw"), "Basic azpw");
  EXPECT_EQ(Canonical("TOKEN k1"), "Token k1");
  EXPECT_EQ(Canonical("Token  token=\"k1==\""), "Token k1==");
  EXPECT_EQ(Canonical("MyScheme K1"), "myscheme K1");
  EXPECT_EQ(Canonical("k1"), "k1");
  EXPECT_EQ(Canonical("Bearer"), "Bearer");
}

TEST(Credentials, OfUsualClientsAreValid) {
  for (const std::string_view value :
       {"Bearer 12|abcDEF-._~+/==", "Negotiate YIIJvw==",
        "Digest username=\"a\", realm=\"x y\", uri=\"/?a=b,c\", response=\"1\"",
        "Basic Og==", "Hawk id=\"a\\\"b\", mac=\"6R4r=\",",
        "SCRAM-SHA-256 realm=\"x\",data=biwsbj11==", "SharedKey account:c2ln==",
        "AWS4-HMAC-SHA256 Credential=A/2/r/s3/aws4_request, SignedHeaders=host, Signature=f0"})
    EXPECT_EQ(Canonical(value), value);
}

TEST(Credentials, AreRefusedIfReadersDiffer) {
  for (const std::string_view value : {"Bearer k1 x",         "bearer k1\tx=1",
                                       "Token k1 x",          "x k1, y",
                                       "x k1 =\"\"",          "x k1 y\"",
                                       "x k1= y=1",           "x k1== y=1",
                                       "x a=1 b=2",           "x a=\"1 b",
                                       "x a=\"1\\\" b",       "x a=1, k1",
                                       "x \"a\"=1 b",         "x , a=1",
                                       "Bearer k,1",          "Bearer k;2",
                                       "Bearer \"k\"",        "Bearer token=k",
                                       "Bearer a=b=",         "Token token=k",
                                       "Token x=\"k\"",       "Token token=\"k\", nonce=\"1\"",
                                       "Token token=\"k,1\"", "token token=\"\""})
    EXPECT_EQ(Canonical(value), "<refused>") << value;
}

TEST(Credentials, OfBasicAreBase64InItsOneForm) {
  for (const std::string_view value : {"azpwcQ", "azpwcQ=", "azpwcR==", "azpw=", "az-w", "az_w",
                                       "a.zpw", "azpw x", "azpw====", "=azp", "a=zp"})
    EXPECT_EQ(Canonical("Basic " + std::string(value)), "<refused>") << value;
  EXPECT_EQ(Canonical("Basic azpwcQ=="), "Basic azpwcQ==");
  EXPECT_EQ(Canonical("Basic azpwcXI="), "Basic azpwcXI=");
}

TEST(Credentials, OfABearerAreTheWordBehindAnyScheme) {
  for (const std::string_view value : {"Bearer k1", "bearer  k1", "k1", "Foo k1", "Token k1"})
    EXPECT_EQ(Bearer(value), "k1") << value;
  EXPECT_EQ(Bearer("Basic azpw"), "<absent>") << "k:p";
  EXPECT_EQ(Bearer("Basic a2V5"), "a2V5") << "it decodes to 'key', which is not USER:PASSWORD";
  for (const std::string_view value : {"", "Bearer", "Bearer ", "Digest username=\"a\", qop=b"})
    EXPECT_EQ(Bearer(value), "<absent>") << value;
  EXPECT_EQ(Bearer("Token token=\"k1\""), "k1");
  for (const std::string_view value :
       {"Bearer k1 x", "Basic k1", "Bearer k,1", "Bearer token=k", "Token token=\"k\", x=\"1\""})
    EXPECT_EQ(Bearer(value), "<invalid>") << value;
}

}  // namespace credentials_test
}  // namespace headgate::wire
