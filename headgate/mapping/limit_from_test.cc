// The limits that requests bring: from whom they are believed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/jwt/test_signer.h"
#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace limit_from_test {

using ::testing::HasSubstr;

constexpr std::string_view kMapping =
    "mappings:\n- descriptors:\n  - {{entries: [{{key: k, value: v}}], limit_from: {}{}}}\n";

LoadedMappings LoadWith(std::string_view head, std::string_view from, const Files& files,
                        Asker asker, std::string_view more = "") {
  return LoadMappings(
      "auth.yaml", std::string(head) + fmt::format(kMapping, from, more),
      [&](const std::string& name) -> absl::StatusOr<std::string> {
        const auto found = files.find(name);
        if (found == files.end()) return absl::NotFoundError("no such file");
        return found->second;
      },
      asker);
}

// The given limit of a request; or "missing", "invalid".
std::string GivenOf(const LoadedMappings& loaded, const DescribedRequest& request) {
  for (const rule::Problem& problem : loaded.problems) ADD_FAILURE() << Describe(problem);
  Mapper mapper;
  mapper.Use(*loaded.set);
  const MappedRequest mapped = mapper.Map(request, 0);
  if (mapped.as == MappedAs::kMissing) return "missing";
  if (mapped.as == MappedAs::kInvalid) return "invalid";
  if (mapped.descriptors.empty()) return "no descriptor";
  return std::string(mapped.descriptors[0].given_limit);
}

// ---- A claim

struct ClaimRig {
  std::string Given(std::string_view authorization, std::string_view more = "") {
    std::vector<HeaderField> fields;
    if (!authorization.empty()) fields.emplace_back("Authorization", authorization);
    const LoadedMappings loaded =
        LoadWith("trusted_proxies: [127.0.0.1]\njwt: [{jwks_file: k}]\n", "{claim: plan}",
                 {{"k", signer.KeySet()}}, Asker::kOtherProxy, more);
    return GivenOf(loaded, {.fields = fields, .peer = Ip("127.0.0.1")});
  }
  std::string GivenBy(std::string_view claims) {
    return Given("Bearer " + signer.Sign(std::string(claims)));
  }
  const jwt::TestSigner signer{jwt::Algorithm::kEs256};
};

TEST(LimitFromAClaim, IsTheClaimOfAVerifiedToken) {
  ClaimRig rig;
  EXPECT_EQ(rig.GivenBy(R"({"plan":"gold"})"), "gold");
  EXPECT_EQ(rig.GivenBy(R"({"plan":500})"), "500");
  EXPECT_EQ(rig.GivenBy(R"({"sub":"ann"})"), "") << "the rule's own limit";
  EXPECT_EQ(rig.Given(""), "");
}

TEST(LimitFromAClaim, MayBeAnyTextThatTheIssuerSigns) {
  ClaimRig rig;
  EXPECT_EQ(rig.GivenBy(R"({"plan":""})"), "");
  EXPECT_EQ(rig.GivenBy(R"({"plan":-1})"), "-1");
  EXPECT_EQ(rig.GivenBy(R"({"plan":1e9})"), "1e9");
  EXPECT_EQ(rig.GivenBy(R"({"plan":null})"), "");
  EXPECT_EQ(rig.GivenBy(R"({"plan":{"a":1}})"), "");
  EXPECT_EQ(rig.GivenBy(R"({"plan":"a\u0000b"})"), "invalid");
  EXPECT_EQ(rig.GivenBy("{\"plan\":\"" + std::string(5000, '9') + "\"}"), std::string(5000, '9'));
}

// Otherwise a client would spoil its token to get the limit of clients that have none.
TEST(LimitFromAClaim, OfATokenThatIsRefusedIsMissing) {
  ClaimRig rig;
  const jwt::TestSigner other(jwt::Algorithm::kEs256);
  const std::string forged = "Bearer " + other.Sign(R"({"plan":"gold"})");
  EXPECT_EQ(rig.Given(forged), "missing");
  EXPECT_EQ(rig.Given(forged, ", optional: true"), "missing");
  EXPECT_EQ(rig.Given("Bearer x"), "missing");
}

TEST(LimitFromAClaim, OfAnUnverifiedTokenIsAProblem) {
  const LoadedMappings loaded =
      LoadWith("trusted_proxies: [127.0.0.1]\njwt: [{unverified: true}]\n", "{claim: plan}", {},
               Asker::kOtherProxy);
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_THAT(Describe(loaded.problems[0]), HasSubstr("limit_from needs verified tokens"));
}

TEST(LimitFromAClaim, IsWarnedAboutIfTheKeyIsNotOfTheToken) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const auto warned = [&](std::string_view entries) {
    const LoadedMappings loaded =
        Load(fmt::format("trusted_proxies: [127.0.0.1]\njwt: [{{jwks_file: k}}]\nmappings:\n"
                         "- descriptors:\n  - {{entries: [{}], limit_from: {{claim: plan}}}}\n",
                         entries),
             {{"k", signer.KeySet()}});
    return !loaded.warnings.empty();
  };
  EXPECT_TRUE(warned("{key: k, client_address: true}"));
  EXPECT_FALSE(warned("{key: k, client_address: true}, {key: user, claim: sub}"));
}

// ---- A header

constexpr std::string_view kTrusted = "trusted_proxies: [10.0.0.0/8]\n";

TEST(LimitFromAHeader, IsBelievedFromTheProxiesThatAsk) {
  const LoadedMappings loaded = LoadWith(kTrusted, "{header: X-Plan}", {}, Asker::kOtherProxy);
  const std::vector<HeaderField> once = {{"X-Plan", "gold"}};
  const std::vector<HeaderField> twice = {{"X-Plan", "gold"}, {"x-plan", "silver"}};
  const std::vector<HeaderField> alike = {{"X_Plan", "gold"}};
  EXPECT_EQ(GivenOf(loaded, {.fields = once, .peer = Ip("10.0.0.1")}), "gold");
  EXPECT_EQ(GivenOf(loaded, {.peer = Ip("10.0.0.1")}), "");
  EXPECT_EQ(GivenOf(loaded, {.fields = twice, .peer = Ip("10.0.0.1")}), "invalid");
  EXPECT_EQ(GivenOf(loaded, {.fields = alike, .peer = Ip("10.0.0.1")}), "invalid");
}

TEST(LimitFromAHeader, IsTheClientsOwnWordWithoutATrustedPeer) {
  const LoadedMappings loaded = LoadWith(kTrusted, "{header: X-Plan}", {}, Asker::kOwnProxy);
  const std::vector<HeaderField> gold = {{"X-Plan", "gold"}, {"X-Forwarded-For", "10.0.0.9"}};
  const std::vector<HeaderField> twice = {{"X-Plan", "gold"}, {"x-plan", "silver"}};
  EXPECT_EQ(GivenOf(loaded, {.fields = gold, .client = Ip("10.0.0.1")}), "gold");
  EXPECT_EQ(GivenOf(loaded, {.fields = gold, .client = Ip("203.0.113.7")}), "");
  EXPECT_EQ(GivenOf(loaded, {.fields = twice, .client = Ip("203.0.113.7")}), "")
      << "nobody is refused for a header that does not count";
  EXPECT_EQ(GivenOf(loaded, {.fields = gold, .client = Ip("10.0.0.1"), .is_forwarded = false}), "")
      << "a PROXY header says so";
  EXPECT_EQ(loaded.set->headers, std::vector<std::string>{"X-Plan"}) << "look-alikes are removed";
}

TEST(LimitFromAHeader, IsWarnedAbout) {
  const LoadedMappings loaded = LoadWith(kTrusted, "{header: X-Plan}", {}, Asker::kOtherProxy);
  std::string warnings;
  for (const rule::Problem& warning : loaded.warnings) warnings += warning.message;
  EXPECT_THAT(warnings,
              HasSubstr("clients choose their limit if a trusted proxy passes on their X-Plan"));
  const LoadedMappings nobody = LoadWith("", "{header: X-Plan}", {}, Asker::kOwnProxy);
  ASSERT_EQ(nobody.problems.size(), 1u);
  EXPECT_THAT(Describe(nobody.problems[0]), HasSubstr("believes only trusted proxies"));
}

TEST(LimitFrom, IsAClaimOrAHeader) {
  for (const std::string_view from : {"{query: plan}", "{cookie: plan}", "{value: gold}", "{}"}) {
    const LoadedMappings loaded = LoadWith(kTrusted, from, {}, Asker::kOtherProxy);
    ASSERT_FALSE(loaded.problems.empty()) << from;
    EXPECT_THAT(Describe(loaded.problems[0]), HasSubstr("limit_from needs a claim or a header"));
  }
}

}  // namespace limit_from_test
}  // namespace headgate::mapping
