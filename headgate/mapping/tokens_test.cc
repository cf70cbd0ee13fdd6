#include "headgate/mapping/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/jwt/test_signer.h"

namespace headgate::mapping {
namespace tokens_test {

// Reads tokens without signatures.
struct Rig {
  Rig() { reader.SetIssuers(issuers); }

  // The claim `sub` of a token of a new request; "none" if it has none.
  std::string SubOf(std::string_view claims) {
    const std::string value = "Bearer " + jwt::EncodeBase64Url("{}") + "." +
                              jwt::EncodeBase64Url(std::string(claims)) + ".";
    const std::array<HeaderField, 1> fields = {{{"Authorization", value}}};
    const std::vector<std::string> names = {"sub"};
    reader.Begin();
    std::string text;
    return reader.Claim(0, names, {.fields = fields}, 0, text) == ClaimLookup::kFound ? text
                                                                                      : "none";
  }

  const std::vector<TokenIssuer> issuers = {
      {.verifier = std::make_shared<jwt::Verifier>(jwt::VerifierOptions{.unverified = true},
                                                   std::vector<jwt::Key>())}};
  TokenReader reader;
};

TEST(TokenReader, KeepsABoundedNumberOfBytes) {
  // The longest tokens, most of which is one name.
  const std::string rest =
      "\",\"" + std::string(2900, 'p') + "\":[0" + std::string(2800, ' ') + "]}";
  Rig rig;
  size_t kept_bytes_most = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string sub = std::to_string(i);
    ASSERT_EQ(rig.SubOf("{\"sub\":\"" + sub + rest), sub);
    kept_bytes_most = std::max(kept_bytes_most, rig.reader.kept_bytes());
  }
  constexpr size_t kOneToken = 64 * 1024;
  EXPECT_LE(kept_bytes_most, TokenReader::kKeptBytesMax + kOneToken);
  EXPECT_GT(kept_bytes_most, TokenReader::kKeptBytesMax / 2);
}

TEST(TokenReader, ForgetsWhatItHasCountedWhenTokensChangeTheirPlaces) {
  Rig rig;
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(rig.SubOf(R"({"sub":")" + std::to_string(i) + "\"}"), std::to_string(i));
  // At most 1,024 small tokens of below 512 bytes.
  EXPECT_LE(rig.reader.kept_bytes(), TokenReader::kKeptMax * 512);
  rig.reader.SetIssuers(rig.issuers);
  EXPECT_EQ(rig.reader.kept_bytes(), 0u);
}

// A request with the token `text` in Authorization.
std::string LookupOf(TokenReader& reader, std::string_view text) {
  const std::string value = "Bearer " + std::string(text);
  const std::array<HeaderField, 1> fields = {{{"Authorization", value}}};
  const std::vector<std::string> names = {"sub"};
  reader.Begin();
  std::string claim;
  reader.Claim(0, names, {.fields = fields}, 0, claim);
  return reader.refusal() == jwt::Refusal::kNone ? claim : std::string(Name(reader.refusal()));
}

TEST(TokenReader, SaysWhyATokenIsRefused) {
  const jwt::TestSigner signer(jwt::Algorithm::kHs256);
  const jwt::TestSigner other(jwt::Algorithm::kEs256);
  const std::vector<TokenIssuer> issuers = {
      {.verifier = std::make_shared<jwt::Verifier>(jwt::VerifierOptions{.issuer = "id"},
                                                   jwt::ReadKeySet(signer.KeySet())->keys)}};
  TokenReader reader;
  reader.SetIssuers(issuers);
  const std::string right = signer.Sign(R"({"sub":"ann","iss":"id"})");
  const std::string wrong = other.Sign(R"({"sub":"ann","iss":"id"})");
  EXPECT_EQ(LookupOf(reader, right), "ann");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(LookupOf(reader, wrong), "signature") << "also when kept";
  EXPECT_EQ(LookupOf(reader, signer.Sign(R"({"sub":"ann","iss":"x"})")), "issuer");
  EXPECT_EQ(LookupOf(reader, "a.b"), "not_three_parts");
  EXPECT_EQ(LookupOf(reader, right), "ann");
}

// New keys are new issuers.
TEST(TokenReader, ForgetsWrongSignaturesWithTheKeys) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const jwt::TestSigner next(jwt::Algorithm::kEs256);
  const auto issuers_of = [](const jwt::TestSigner& of) {
    return std::vector<TokenIssuer>{
        {.verifier = std::make_shared<jwt::Verifier>(jwt::VerifierOptions{},
                                                     jwt::ReadKeySet(of.KeySet())->keys)}};
  };
  const std::vector<TokenIssuer> before = issuers_of(signer);
  const std::vector<TokenIssuer> after = issuers_of(next);
  const std::string token = next.Sign(R"({"sub":"ann"})");
  TokenReader reader;
  reader.SetIssuers(before);
  EXPECT_EQ(LookupOf(reader, token), "signature");
  reader.SetIssuers(after);
  EXPECT_EQ(LookupOf(reader, token), "ann");
}

}  // namespace tokens_test
}  // namespace headgate::mapping
