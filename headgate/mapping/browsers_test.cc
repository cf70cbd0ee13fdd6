// The words of a mapping file for web pages: preflights and cors_origins.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace browsers_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// wire/preflight_test.cc has what a preflight is.
TEST(Browsers, APreflightPassesUnlessItIsRefusedOrNamesItsClient) {
  constexpr std::string_view kText = R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
preflights: pass
mappings:
- path: /login
  method: [POST]
  descriptors:
  - entries: [{key: login, client_address: true}]
- refuse: [{client_address: true, networks: [192.0.2.0/24]}, {header: User-Agent, values: [bad]}]
  descriptors:
  - entries: [{key: agent, header: User-Agent}, {key: path, path: true}]
  - {entries: [{key: api_key, header: X-API-Key}], optional: true}
)";
  MappingRig rig(kText);
  const auto map = [&](std::string_view address, std::string_view agent, HeaderField more = {},
                       std::string_view target = "/login") {
    const std::vector<HeaderField> fields = {{"X-Forwarded-For", address},
                                             {"Origin", "https://a.example"},
                                             {"Access-Control-Request-Method", "POST"},
                                             {"User-Agent", agent},
                                             more};
    return rig.Map(
        {.method = "OPTIONS", .target = target, .fields = fields, .peer = Ip("10.0.0.1")});
  };
  EXPECT_EQ(map("203.0.113.7", "Mozilla"), "preflight");
  EXPECT_EQ(map("192.0.2.7", "Mozilla"), "refused");
  EXPECT_EQ(map("203.0.113.7", "bad"), "refused");
  EXPECT_EQ(map("203.0.113.7", "Mozilla", {"X-API-Key", "k1"}),
            "agent=Mozilla,path=/login; api_key=k1");
  EXPECT_EQ(map("203.0.113.7", "Mozilla", {"Cookie", "a=b"}), "agent=Mozilla,path=/login");
  EXPECT_EQ(map("203.0.113.7", "Mozilla", {}, "/a%2fb"), "invalid the original request")
      << "as the request that follows it";
}

TEST(Browsers, OriginsAreWrittenAsBrowsersSendThem) {
  const auto load = [](std::string_view origins, std::string_view form = "x-forwarded") {
    return Load(
        fmt::format("trusted_proxies: [10.0.0.1]\noriginal_request: {}\npreflights: pass\n"
                    "cors_origins: {}\nmappings:\n- descriptors: []\n",
                    form, origins));
  };
  const LoadedMappings valid = load("[https://app.example.com, \"http://localhost:3000\"]");
  ASSERT_THAT(valid.problems, IsEmpty());
  EXPECT_TRUE(valid.set->passes_preflights);
  EXPECT_THAT(valid.set->cors_origins,
              ElementsAre("https://app.example.com", "http://localhost:3000"));
  EXPECT_THAT(load("\"*\"").problems, IsEmpty());
  const LoadedMappings wrong = load("[https://App.example.com, \"null\"]");
  ASSERT_EQ(wrong.problems.size(), 2u);
  EXPECT_THAT(Describe(wrong.problems[0]),
              AllOf(HasSubstr("auth.yaml:4:16"),
                    HasSubstr("'https://App.example.com' has upper-case letters"),
                    HasSubstr("write https://app.example.com")));
  EXPECT_THAT(valid.warnings, IsEmpty());
  const LoadedMappings envoy = load("\"*\"", "request-line");
  ASSERT_EQ(envoy.warnings.size(), 1u);
  EXPECT_THAT(Describe(envoy.warnings[0]), HasSubstr("filter cors in front of ext_authz"));
  const LoadedMappings unknown = load("\"*\"", "none");
  ASSERT_EQ(unknown.problems.size(), 1u);
  EXPECT_THAT(Describe(unknown.problems[0]), HasSubstr("preflights: pass needs original_request"));
}

// Its pool needs them too, and it has no file of mappings without rules.
TEST(Browsers, TheSidecarHasFlagsForBrowsers) {
  const LoadedMappings loaded = LoadMappings(
      "map.yaml",
      "preflights: pass\ncors_origins: [https://a.example]\nmappings:\n- descriptors: []\n",
      [](const std::string&) { return absl::NotFoundError("no files"); }, Asker::kOwnProxy);
  ASSERT_THAT(loaded.problems, IsEmpty());
  EXPECT_FALSE(loaded.set->passes_preflights);
  ASSERT_EQ(loaded.warnings.size(), 2u);
  EXPECT_THAT(Describe(loaded.warnings[0]), HasSubstr("preflights has no effect in the sidecar"));
  EXPECT_THAT(Describe(loaded.warnings[1]), HasSubstr("--cors-origin"));
}

}  // namespace browsers_test
}  // namespace headgate::mapping
