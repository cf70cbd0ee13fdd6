#include "headgate/wire/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {
namespace origin_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kTwo = {"https://app.example.com", "http://localhost:3000"};

std::vector<std::string> Fields(const std::vector<std::string>& allowed,
                                std::optional<std::string_view> sent,
                                RateLimitDialect dialect = RateLimitDialect::kDraft) {
  std::vector<std::string> fields;
  std::string scratch;
  EmitCorsFields(FindAllowedOrigin(allowed, sent), dialect, scratch,
                 [&](std::string_view name, std::string_view value) {
                   fields.push_back(std::string(name).append(": ").append(value));
                 });
  return fields;
}

TEST(Cors, AListedOriginMayReadTheAnswer) {
  EXPECT_THAT(
      Fields(kTwo, "http://localhost:3000"),
      ElementsAre("Vary: Origin", "Access-Control-Allow-Origin: http://localhost:3000",
                  "Access-Control-Allow-Credentials: true",
                  "Access-Control-Expose-Headers: Retry-After, RateLimit-Policy, RateLimit"));
}

// A cache must not give the answer for one origin to another.
TEST(Cors, AnyOtherOriginMayNot) {
  for (const std::string_view sent :
       {"https://evil.example", "null", "", "https://app.example.com.evil.example",
        "https://APP.example.com", "https://app.example.com:443", "http://app.example.com"}) {
    EXPECT_THAT(Fields(kTwo, sent), ElementsAre("Vary: Origin")) << sent;
  }
  EXPECT_THAT(Fields(kTwo, std::nullopt), ElementsAre("Vary: Origin"));
}

// Fetch, 3.3.5: a browser refuses `*` for a request with credentials.
TEST(Cors, EveryOriginMayReadTheAnswerWithoutCredentials) {
  for (const std::optional<std::string_view> sent :
       {std::optional<std::string_view>("https://any.example"),
        std::optional<std::string_view>("null"), std::optional<std::string_view>()}) {
    EXPECT_THAT(Fields({"*"}, sent),
                ElementsAre("Access-Control-Allow-Origin: *",
                            "Access-Control-Expose-Headers: Retry-After, RateLimit-Policy, "
                            "RateLimit"));
  }
}

TEST(Cors, WithoutTheSettingThereIsNoField) {
  EXPECT_THAT(Fields({}, "https://app.example.com"), IsEmpty());
}

TEST(Cors, TheFieldsOfTheDialectAreExposed) {
  EXPECT_THAT(Fields({"*"}, std::nullopt, RateLimitDialect::kNone).back(),
              "Access-Control-Expose-Headers: Retry-After");
  EXPECT_THAT(Fields({"*"}, std::nullopt, RateLimitDialect::kAll).back(),
              HasSubstr(", X-RateLimit-Remaining, "));
}

TEST(AllowedOrigin, IsWrittenAsBrowsersSendIt) {
  for (const std::string_view text :
       {"*", "https://app.example.com", "http://localhost:3000", "https://[2001:db8::1]:8443",
        "http://127.0.0.1:8080", "https://xn--bcher-kva.example", "http://a.example:443"}) {
    EXPECT_FALSE(CheckAllowedOrigin(text)) << text;
  }
  struct Case {
    std::string_view text;
    std::string_view hint;
  };
  for (const Case& c :
       {Case{"https://app.example.com/", "nothing behind it"},
        Case{"app.example.com", "https://app.example.com"},
        Case{"https://", "write it as browsers do"}, Case{"", "write it as browsers do"},
        Case{"https://a b", "write it as browsers do"},
        Case{"https://a\r\nX: y", "write it as browsers do"},
        Case{"https://App.example.com", "write https://app.example.com"},
        Case{"https://app.example.com:443", "write https://app.example.com"},
        Case{"http://app.example.com:80", "write http://app.example.com"},
        Case{"https://*.example.com", "write each origin"},
        Case{"null", "any site can make such a page"}}) {
    const auto problem = CheckAllowedOrigin(c.text);
    ASSERT_TRUE(problem) << c.text;
    EXPECT_THAT(problem->hint, HasSubstr(c.hint)) << c.text;
  }
}

}  // namespace origin_test
}  // namespace headgate::wire
