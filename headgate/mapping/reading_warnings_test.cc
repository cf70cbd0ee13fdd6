#include "headgate/mapping/reading_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace reading_warnings_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string WarningsOf(std::string_view mappings) {
  const LoadedMappings loaded =
      Load("trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\nmappings:" +
           std::string(mappings));
  EXPECT_THAT(loaded.problems, IsEmpty());
  return rule::Describe(loaded.warnings);
}

constexpr std::string_view kLast =
    "\n- descriptors: [{entries: [{key: k, client_address: true}]}]\n";

std::string WarningsOfFirst(std::string_view mapping) {
  return WarningsOf("\n- " + std::string(mapping) + std::string(kLast));
}

TEST(ReadingWarnings, ThereAreNoneForAMappingWithoutAProblem) {
  EXPECT_EQ(WarningsOf(kLast), "");
  EXPECT_EQ(WarningsOfFirst("path: [/login, /login/]"), "");
  EXPECT_EQ(WarningsOfFirst(
                "path: [/api, /api/*]\n  descriptors:\n  - entries: [{key: a, header: X-API-Key}]\n"
                "  - entries: [{key: b, bearer: true}, {key: c, cookie: sid}]"),
            "");
  EXPECT_EQ(WarningsOfFirst("host: a.example.com"), "");
}

TEST(ReadingWarnings, ThereIsOneForAMethodThatCanBeOverridden) {
  EXPECT_THAT(WarningsOfFirst("method: [GET, POST]"),
              AllOf(HasSubstr("auth.yaml:4:3: mappings[0]"), HasSubstr("X-HTTP-Method-Override"),
                    HasSubstr("hint: ")));
}

TEST(ReadingWarnings, ThereIsOneForAKeyOfTheMethod) {
  EXPECT_THAT(WarningsOfFirst("host: a\n  descriptors: [{entries: [{key: k, method: true}]}]"),
              AllOf(HasSubstr("another method than the one that is counted"),
                    HasSubstr("leave method: true out")));
}

TEST(ReadingWarnings, ThereIsOneForASlashAtTheEnd) {
  EXPECT_THAT(WarningsOfFirst("path: /login"), HasSubstr("'/login' does not fit '/login/'"));
  EXPECT_THAT(WarningsOfFirst("path: /login/"), HasSubstr("'/login/' does not fit '/login'"));
  EXPECT_THAT(WarningsOfFirst("path: /api/*"), HasSubstr("'/api/*' does not fit '/api'"));
  EXPECT_EQ(WarningsOfFirst("path: [/, /login]\n- path: /login/"), "") << "in another mapping";
}

TEST(ReadingWarnings, ThereIsOneForAScript) {
  EXPECT_THAT(WarningsOfFirst("path: [/login.php, /login.php/]"),
              HasSubstr("'/login.php/x' is invalid, because many servers run '/login.php' for it"));
  EXPECT_EQ(WarningsOfFirst("path: [/login.php, /login.php/*]"), "");
}

TEST(ReadingWarnings, ThereIsOneForEachAttributeThatApplicationsReadElsewhere) {
  EXPECT_THAT(WarningsOfFirst("descriptors: [{entries: [{key: k, query: key}]}]\n  host: a"),
              HasSubstr("the parameter 'key' from a form"));
  EXPECT_THAT(WarningsOfFirst("descriptors: [{entries: [{key: k, path: true}]}]\n  host: a"),
              HasSubstr("path: true makes a key of each path"));
  for (const std::string_view part : {"path_prefix: 1", "path_segment: 2"}) {
    EXPECT_THAT(WarningsOfFirst("descriptors: [{entries: [{key: k, " + std::string(part) +
                                "}]}]\n  host: a"),
                HasSubstr("a key of a part of the path has a limit for each spelling"));
  }
  for (const std::string_view place :
       {"descriptors: [{entries: [{key: k, header: authorization}]}]",
        "refuse: [{header: Authorization, values: [Bearer x]}]"})
    EXPECT_THAT(WarningsOfFirst(std::string(place) + "\n  host: a"), HasSubstr("bearer: true"));
}

TEST(ReadingWarnings, ThereAreNoneBesideProblems) {
  const LoadedMappings loaded = Load("trusted_proxies: [10.0.0.0/8]\nmappings:\n- method: get\n");
  EXPECT_THAT(loaded.problems, Not(IsEmpty()));
  EXPECT_THAT(loaded.warnings, IsEmpty());
}

}  // namespace reading_warnings_test
}  // namespace headgate::mapping
