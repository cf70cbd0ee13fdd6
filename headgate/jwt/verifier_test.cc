#include "headgate/jwt/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/jwt/test_signer.h"

namespace headgate::jwt {
namespace verifier_test {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

std::vector<Key> Keys(std::string_view key_set) {
  auto set = ReadKeySet(key_set);
  EXPECT_TRUE(set.ok()) << set.status();
  return set.ok() ? std::move(set->keys) : std::vector<Key>();
}

// "ok", or the reason of the refusal.
std::string Verdict(const Verifier& verifier, std::string_view token, int64_t now_s = kNow) {
  Verifier::Token result;
  const Refusal refusal = verifier.Verify(token, now_s, result);
  return refusal == Refusal::kNone ? "ok" : std::string(Describe(refusal));
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm,
                         ::testing::Values(Algorithm::kHs256, Algorithm::kHs384, Algorithm::kHs512,
                                           Algorithm::kRs256, Algorithm::kPs256, Algorithm::kEs256,
                                           Algorithm::kEdDsa),
                         [](const auto& p) { return std::string(Name(p.param)); });

TEST_P(EveryAlgorithm, AcceptsItsSignatureAndNoOther) {
  const TestSigner signer(GetParam());
  const Verifier verifier({}, Keys(signer.KeySet()));
  const std::string token = signer.Sign(R"({"sub":"ann"})");
  Verifier::Token result;
  ASSERT_EQ(verifier.Verify(token, kNow, result), Refusal::kNone);
  ASSERT_TRUE(result.claims.Find("sub"));
  EXPECT_EQ(result.claims.Find("sub")->text, "ann");

  const std::string other = signer.Sign(R"({"sub":"bob"})");
  const std::string mixed = other.substr(0, other.rfind('.')) + token.substr(token.rfind('.'));
  EXPECT_EQ(Verdict(verifier, mixed), "no key verifies the token's signature");
  const std::string unsigned_token = token.substr(0, token.rfind('.') + 1);
  EXPECT_EQ(Verdict(verifier, unsigned_token), "no key verifies the token's signature");
  EXPECT_EQ(Verdict(verifier, unsigned_token + "AAAA"), "no key verifies the token's signature");
}

TEST_P(EveryAlgorithm, TheTokenDoesNotChooseTheAlgorithm) {
  const TestSigner signer(GetParam());
  const Verifier verifier({}, Keys(signer.KeySet()));
  for (const std::string_view header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({})", R"({"alg":"HS1"})", R"({"alg":7})"}) {
    EXPECT_EQ(Verdict(verifier, signer.SignWithHeader(header, "{}")),
              "no key verifies the token's signature");
  }
}

// RFC 7515, appendix A.1.
TEST(Verifier, AcceptsTheHs256ExampleOfTheRfc) {
  const Verifier verifier(
      {},
      Keys(
          R"({"keys":[{"kty":"oct","k":)"
          R"("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}]})"));
  const std::string token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl"
      "fQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  EXPECT_EQ(Verdict(verifier, token, 1'300'819'379), "ok");
  EXPECT_EQ(Verdict(verifier, token, 1'300'819'411), "the token has expired");
}

// RFC 7515, appendix A.3.
TEST(Verifier, AcceptsTheEs256ExampleOfTheRfc) {
  const Verifier verifier({}, Keys(R"({"keys":[{"kty":"EC","crv":"P-256",)"
                                   R"("x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                                   R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})"));
  const std::string token =
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl"
      "fQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
  EXPECT_EQ(Verdict(verifier, token, 1'300'000'000), "ok");
}

// RFC 8037, appendix A.4.
TEST(Signature, AcceptsTheEd25519ExampleOfTheRfc) {
  const std::vector<Key> keys = Keys(
      R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})");
  const std::string_view message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
  Verifier::Token result;
  EXPECT_EQ(
      Verdict(Verifier({}, keys), std::string(message) +
                                      ".hgyY0il_MGCjP0JzlnLWG1PPOt7-"
                                      "09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"),
      "the claims of the token are not a JSON object")
      << "the signature is good; the example's content is not JSON";
}

TEST(Verifier, ChecksTimesWithLeeway) {
  const TestSigner signer(Algorithm::kHs256);
  const Verifier verifier({.leeway = std::chrono::seconds(10)}, Keys(signer.KeySet()));
  const std::string token = signer.Sign(R"({"nbf":1000.75,"exp":2000})");
  EXPECT_EQ(Verdict(verifier, token, 989), "the token is not valid yet");
  EXPECT_EQ(Verdict(verifier, token, 990), "ok");
  EXPECT_EQ(Verdict(verifier, token, 2009), "ok");
  EXPECT_EQ(Verdict(verifier, token, 2010), "the token has expired");
  for (const std::string_view claims : {R"({"exp":"2000"})", R"({"exp":-1})", R"({"exp":1e10})",
                                        R"({"exp":null})", R"({"exp":99999999999999999999})"}) {
    EXPECT_EQ(Verdict(verifier, signer.Sign(claims)), "exp or nbf of the token is not a time")
        << claims;
  }
}

TEST(Verifier, ChecksIssuerAndAudience) {
  const TestSigner signer(Algorithm::kHs256);
  const Verifier verifier({.issuer = "https://id", .audiences = {"api", "web"}},
                          Keys(signer.KeySet()));
  EXPECT_EQ(Verdict(verifier, signer.Sign(R"({"iss":"https://id","aud":"web"})")), "ok");
  EXPECT_EQ(Verdict(verifier, signer.Sign(R"({"iss":"https://id","aud":["x","api"]})")), "ok");
  EXPECT_EQ(Verdict(verifier, signer.Sign(R"({"iss":"https://other","aud":"web"})")),
            "the token is of another issuer");
  EXPECT_EQ(Verdict(verifier, signer.Sign(R"({"aud":"web"})")), "the token is of another issuer");
  for (const std::string_view audience : {R"("x")", R"([])", R"([["api"]])", R"({"a":"api"})"}) {
    EXPECT_EQ(
        Verdict(
            verifier,
            signer.Sign(std::string(R"({"iss":"https://id","aud":)").append(audience).append("}"))),
        "the token is for another audience")
        << audience;
  }
}

TEST(Verifier, ChoosesTheKeyByItsIdAndRefusesCriticalExtensions) {
  const TestSigner a(Algorithm::kEs256);
  const TestSigner b(Algorithm::kEs256);
  const Verifier verifier({}, Keys("{\"keys\":[" + a.PublicKey(R"(,"kid":"a")") + "," +
                                   b.PublicKey(R"(,"kid":"b")") + "]}"));
  EXPECT_EQ(Verdict(verifier, b.Sign("{}", R"(,"kid":"b")")), "ok");
  EXPECT_EQ(Verdict(verifier, b.Sign("{}")), "ok");
  EXPECT_EQ(Verdict(verifier, b.Sign("{}", R"(,"kid":"a")")),
            "no key verifies the token's signature");
  EXPECT_EQ(Verdict(verifier, b.Sign("{}", R"(,"crit":["exp"])")),
            "the token has critical extensions");
}

// Anybody can send a token with a wrong signature.
TEST(Verifier, ComparesATokenWithFourKeysAtMost) {
  const std::vector<TestSigner> signers = [] {
    std::vector<TestSigner> made;
    for (int i = 0; i < 5; ++i) made.emplace_back(Algorithm::kEs256);
    return made;
  }();
  const auto with_keys = [&](size_t count) {
    std::string set;
    for (size_t i = 0; i < count; ++i)
      set += (i == 0 ? "" : ",") + signers[i].PublicKey(R"(,"kid":"k)" + std::to_string(i) + "\"");
    return Verifier({}, Keys("{\"keys\":[" + set + "]}"));
  };
  EXPECT_EQ(Verdict(with_keys(4), signers[3].Sign("{}")), "ok");
  EXPECT_EQ(Verdict(with_keys(5), signers[0].Sign("{}")),
            "the token names no key (kid), and more keys fit than are tried");
  EXPECT_EQ(Verdict(with_keys(5), signers[4].Sign("{}", R"(,"kid":"k4")")), "ok");
  const TestSigner rsa(Algorithm::kRs256);
  std::vector<Key> keys = Keys(rsa.KeySet());
  for (const TestSigner& signer : signers) {
    for (const Key& key : Keys(signer.KeySet(R"(,"kid":"e")"))) keys.push_back(key);
  }
  EXPECT_EQ(Verdict(Verifier({}, keys), rsa.Sign("{}")), "ok") << "keys of others do not count";
}

TEST(Verifier, EachRefusalHasItsOwnName) {
  std::set<std::string_view> names;
  for (size_t i = 1; i < kRefusals; ++i) {
    names.insert(Name(static_cast<Refusal>(i)));
    EXPECT_FALSE(Describe(static_cast<Refusal>(i)).empty());
  }
  EXPECT_EQ(names.size(), kRefusals - 1);
  EXPECT_FALSE(names.contains(""));
}

TEST(Verifier, ReadsOfTheHeaderOnlyWhatItNeeds) {
  const TestSigner signer(Algorithm::kHs256);
  const Verifier verifier({}, Keys(signer.KeySet()));
  EXPECT_EQ(Verdict(verifier, signer.SignWithHeader(
                                  R"({"x":[{"alg":"none"}],"x":{"kid":7},"alg":"HS256"})", "{}")),
            "ok");
  EXPECT_EQ(Verdict(verifier, signer.SignWithHeader(R"({"alg":"none","alg":"HS256"})", "{}")),
            "the header of the token is not a JSON object");
}

TEST(Verifier, APublicKeyIsNoSecret) {
  const TestSigner rsa(Algorithm::kRs256);
  const TestSigner hmac(Algorithm::kHs256);
  const Verifier verifier({}, Keys(rsa.KeySet()));
  EXPECT_EQ(Verdict(verifier, hmac.Sign("{}")), "no key verifies the token's signature");
  EXPECT_FALSE(
      SecretKey("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n", Algorithm::kHs256).ok());
  EXPECT_FALSE(SecretKey(std::string(31, 's'), Algorithm::kHs256).ok());
  EXPECT_TRUE(SecretKey(std::string(32, 's'), Algorithm::kHs256).ok());
  EXPECT_FALSE(SecretKey(std::string(63, 's'), Algorithm::kHs512).ok());
}

TEST(Verifier, UnverifiedReadsClaimsAndStillChecksTimes) {
  const Verifier verifier({.unverified = true}, {});
  const std::string token =
      EncodeBase64Url("{}") + "." + EncodeBase64Url(R"({"sub":"x","exp":5})") + ".";
  EXPECT_EQ(Verdict(verifier, token, 4), "ok");
  EXPECT_EQ(Verdict(verifier, token, 40), "the token has expired");
}

TEST(Verifier, RefusesMalformedTokens) {
  const TestSigner signer(Algorithm::kHs256);
  const Verifier verifier({}, Keys(signer.KeySet()));
  const std::string good = signer.Sign("{}");
  EXPECT_EQ(Verdict(verifier, ""), "the token is not header.claims.signature");
  EXPECT_EQ(Verdict(verifier, "a.b"), "the token is not header.claims.signature");
  EXPECT_EQ(Verdict(verifier, good + "."), "the token is not header.claims.signature");
  EXPECT_EQ(Verdict(verifier, good + "="), "a part of the token is not base64url");
  EXPECT_EQ(Verdict(verifier, std::string(kTokenBytesMax + 1, 'a')), "the token is too long");
  EXPECT_EQ(Verdict(verifier, signer.SignWithHeader("[]", "{}")),
            "the header of the token is not a JSON object");
  EXPECT_EQ(Verdict(verifier, signer.Sign(R"({"a":1,"a":2})")),
            "the claims of the token are not a JSON object");
}

TEST(KeySet, RefusesWeakAndMalformedKeys) {
  const auto reason = [](std::string_view key) {
    const auto keys = ReadKeySet("{\"keys\":[" + std::string(key) + "]}");
    return keys.ok() ? "ok" : std::string(keys.status().message());
  };
  const std::string modulus = EncodeBase64Url(std::string(256, '\xff'));
  const auto rsa = [&](const std::string& n, const std::string& e) {
    return R"({"kty":"RSA","n":")" + n + R"(","e":")" + e + R"("})";
  };
  EXPECT_EQ(reason(rsa(modulus, "AQAB")), "ok");
  EXPECT_THAT(reason(rsa(modulus, "AQ")), HasSubstr("exponent")) << "e = 1: anybody can sign";
  EXPECT_THAT(reason(rsa(modulus, "Ag")), HasSubstr("exponent"));
  EXPECT_THAT(reason(rsa(EncodeBase64Url(std::string(64, '\xff')), "AQAB")), HasSubstr("modulus"));
  EXPECT_THAT(reason(rsa(EncodeBase64Url(std::string(513, '\xff')), "AQAB")), HasSubstr("modulus"));
  EXPECT_THAT(reason(rsa("", "AQAB")), HasSubstr("\"n\" is missing"));

  const auto ec = [](const std::string& x, const std::string& y) {
    return R"({"kty":"EC","crv":"P-256","x":")" + x + R"(","y":")" + y + R"("})";
  };
  EXPECT_THAT(reason(ec(EncodeBase64Url(std::string(32, '\x01')),
                        EncodeBase64Url(std::string(32, '\x02')))),
              HasSubstr("not on the curve"));
  EXPECT_THAT(reason(ec(EncodeBase64Url(std::string(31, '\x01')),
                        EncodeBase64Url(std::string(32, '\x02')))),
              HasSubstr("32 bytes"));

  const auto ed = [](std::string x) {
    x.resize(32);
    return R"({"kty":"OKP","crv":"Ed25519","x":")" + EncodeBase64Url(x) + R"("})";
  };
  EXPECT_THAT(reason(ed(std::string(1, '\x01'))), HasSubstr("small order"));
  EXPECT_THAT(reason(ed("")), HasSubstr("small order"));
  std::string with_sign(32, '\0');
  with_sign[0] = '\x01';
  with_sign[31] = '\x80';
  EXPECT_THAT(reason(ed(with_sign)), HasSubstr("small order"));
}

TEST(KeySet, SkipsKeysThatVerifyNothingAndRefusesASetWithoutAny) {
  const TestSigner signer(Algorithm::kEs256);
  const std::string others =
      R"({"kty":"RSA","use":"enc","n":"AA","e":"AQAB"},{"kty":"EC","crv":"P-521","x":"","y":""},)"
      R"({"kty":"RSA","alg":"RSA-OAEP","n":"AA","e":"AQAB"},{"kty":"new"})";
  EXPECT_EQ(Keys("{\"keys\":[" + others + "," + signer.PublicKey() + "]}").size(), 1u);
  EXPECT_FALSE(ReadKeySet("{\"keys\":[" + others + "]}").ok());
  for (const std::string_view text : {"", "{}", "[]", R"({"keys":{}})", R"({"keys":[1]})",
                                      R"({"keys":[],"keys":[]})", "{\"keys\":["}) {
    EXPECT_FALSE(ReadKeySet(text).ok()) << text;
  }
}

TEST(KeySet, AWeakKeyDoesNotSpoilTheOthers) {
  const TestSigner signer(Algorithm::kEs256);
  const std::string weak = R"({"kty":"RSA","n":"AQAB","e":"AQAB","kid":"w"})";
  const auto set =
      ReadKeySet("{\"keys\":[" + weak + "," + signer.PublicKey(R"(,"kid":"a")") + "]}");
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->keys.size(), 1u);
  EXPECT_EQ(set->keys.front().id, "a");
  ASSERT_EQ(set->warnings.size(), 1u);
  EXPECT_THAT(set->warnings.front(), HasSubstr("keys[0] is not used: an RSA modulus"));
}

TEST(KeySet, AKeyWithAMemberTwiceIsNotUsed) {
  const TestSigner signer(Algorithm::kHs256);
  EXPECT_THAT(ReadKeySet(signer.KeySet(R"(,"kid":"a","kid":"b")")).status().message(),
              HasSubstr("a member twice"));
  EXPECT_THAT(ReadKeySet(signer.KeySet(R"(,"x":{"a":1,"a":2})")).status().message(),
              HasSubstr("a member twice"));
  EXPECT_TRUE(ReadKeySet(signer.KeySet(R"(,"x":{"a":1,"b":2})")).ok());
}

TEST(KeySet, AFewKeysMayDoWithoutAnId) {
  const auto set = [](int unnamed, int named) {
    std::string keys;
    for (int i = 0; i < unnamed + named; ++i) {
      keys += (i == 0 ? "" : ",") +
              TestSigner(Algorithm::kHs256).PublicKey(i < unnamed ? "" : R"(,"kid":"n")");
    }
    return ReadKeySet("{\"keys\":[" + keys + "]}");
  };
  EXPECT_THAT(set(1, 0)->warnings, ::testing::IsEmpty());
  EXPECT_THAT(set(3, 1)->warnings, ::testing::ElementsAre(HasSubstr("3 of 4 keys have no")));
  EXPECT_THAT(set(5, 0).status().message(), HasSubstr("5 keys of HS256 fit a token that names no"));
  EXPECT_THAT(set(3, 2).status().message(), HasSubstr("5 keys of HS256 fit a token that has the"));
}

}  // namespace verifier_test
}  // namespace headgate::jwt
