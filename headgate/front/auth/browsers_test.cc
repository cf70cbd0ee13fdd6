// Forward-auth for web pages: refusals that they can read, and preflights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/front/auth/auth_rig.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::auth {
namespace browsers_test {

using ::testing::HasSubstr;
using ::testing::Not;

// Caddy, Traefik and Envoy show their clients the whole answer.
TEST(Auth, OnlyAnAnswerThatLetsARequestPassHasEmptyFields) {
  AuthRig rig(kByKey, {"api_key: 1/minute"});
  const auto fields = [&](std::string_view path) {
    return http::Lines(rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", path}}).fields);
  };
  EXPECT_THAT(fields("/free/x"), HasSubstr("\r\nRateLimit: \r\n"));
  EXPECT_THAT(fields("/x"), Not(HasSubstr("RateLimit"))) << "missing";
}

// Fetch, 3.3.
TEST(Auth, APageMayReadARefusalIfItsOriginIsListed) {
  AuthRig rig(std::string("cors_origins: [https://app.example.com]") + std::string(kByKey),
              {"api_key: 1/minute"});
  const auto ask = [&](std::string_view origin) {
    const http::Response response = rig.Ask(
        "GET", "/auth", {{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}, {"Origin", origin}});
    return http::Lines(response.fields);
  };
  EXPECT_THAT(ask("https://app.example.com"), Not(HasSubstr("Access-Control")))
      << "the application's answer has its own";
  EXPECT_THAT(ask("https://app.example.com"),
              HasSubstr("Vary: Origin\r\n"
                        "Access-Control-Allow-Origin: https://app.example.com\r\n"
                        "Access-Control-Allow-Credentials: true\r\n"
                        "Access-Control-Expose-Headers: Retry-After, RateLimit-Policy, RateLimit, "
                        "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset\r\n"));
  for (const std::string_view origin : {"https://evil.example", "null", ""}) {
    EXPECT_THAT(ask(origin), Not(HasSubstr("Access-Control"))) << origin;
    EXPECT_THAT(ask(origin), HasSubstr("Vary: Origin\r\n")) << origin;
  }
  const http::Response twice = rig.Ask("GET", "/auth",
                                       {{"X-Forwarded-Uri", "/x"},
                                        {"Origin", "https://app.example.com"},
                                        {"Origin", "https://app.example.com"}});
  EXPECT_THAT(http::Lines(twice.fields), Not(HasSubstr("Access-Control")));
}

TEST(Auth, APreflightPassesUncountedWithOneLine) {
  const std::string text = std::string(kByKey);
  AuthRig rig(text, {"api_key: 1/minute"});
  const auto ask = [&](std::vector<std::pair<std::string_view, std::string_view>> more = {}) {
    std::vector<std::pair<std::string_view, std::string_view>> fields = {
        {"X-Forwarded-Uri", "/x"},
        {"X-Forwarded-Method", "OPTIONS"},
        {"Origin", "https://app.example.com"},
        {"Access-Control-Request-Method", "POST"},
        {"Access-Control-Request-Headers", "x-api-key"}};
    fields.insert(fields.end(), more.begin(), more.end());
    return OutcomeOf(rig.Ask("GET", "/auth", std::move(fields)));
  };
  EXPECT_EQ(ask(), "missing") << "by default";
  rig.Publish("preflights: pass" + text);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(), "preflight");
  EXPECT_EQ(rig.counters.outcomes[static_cast<size_t>(gate::RequestOutcome::kPreflight)].value(),
            3u);
  // Only a proxy in between can have added the key.
  EXPECT_EQ(ask({{"X-API-Key", "k1"}}), "allowed");
  EXPECT_EQ(ask({{"X-API-Key", "k1"}}), "denied");
  EXPECT_EQ(ask({{"X_API_Key", "k1"}}), "invalid");
  EXPECT_EQ(ask({{"Authorization", "Basic azpw"}}), "missing");
  EXPECT_EQ(ask({{"Cookie", "sid=1"}}), "missing");
  EXPECT_EQ(ask({{"X-HTTP-Method-Override", "POST"}}), "missing");
  EXPECT_EQ(ask({{"Origin", "https://b.example"}}), "missing");
}

}  // namespace browsers_test
}  // namespace headgate::front::auth
