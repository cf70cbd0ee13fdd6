// The bodies of refusals, and the form of their fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "headgate/front/auth/auth_rig.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::auth {
namespace refusals_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const rule::Refusal> PlainRefusal(std::string_view body) {
  return std::make_shared<const rule::Refusal>(*rule::Refusal::Make("text/plain", body));
}

// Three requests of each of these keys are one too many.
constexpr std::string_view kTwoEach = R"(
domain: default
descriptors:
- key: own
  rate_limit: {unit: hour, requests_per_unit: 2}
  rate_limit_fields: openai
  refusal: {content_type: application/json, body: '{"rule":"${rule}","wait":${seconds},"limit":${limit}}'}
- key: plain
  rate_limit: {unit: hour, requests_per_unit: 2}
)";
constexpr std::string_view kOwnAndPlain = R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
mappings:
- path: /own
  rate_limit_fields: twitter
  refusal: {body: of the mapping}
  descriptors:
  - entries: [{key: own, header: X-API-Key}]
- path: /mapped
  rate_limit_fields: twitter
  refusal: {body: of the mapping}
  descriptors:
  - entries: [{key: plain, header: X-API-Key}]
- descriptors:
  - entries: [{key: plain, header: X-API-Key}]
)";

TEST(AuthRefusals, ARefusalHasTheBodyOfTheRuleOrTheMappingOrTheListener) {
  AuthRig rig(kOwnAndPlain, {}, {.refusal = PlainRefusal("of the listener")});
  rig.SetRuleFile(kTwoEach);
  const auto third = [&](std::string_view path, std::string_view key) {
    http::Response response;
    for (int i = 0; i < 3; ++i)
      response = rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", path}, {"X-API-Key", key}});
    EXPECT_EQ(response.status, 429);
    return response;
  };
  // 14:13:20: the hour ends in 46 minutes and 40 seconds.
  const http::Response of_rule = third("/own", "a");
  EXPECT_EQ(of_rule.body, R"({"rule":"own","wait":2800,"limit":2})");
  EXPECT_THAT(http::Lines(of_rule.fields), HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(http::Lines(of_rule.fields), HasSubstr("x-ratelimit-reset-requests: 46m40s\r\n"));
  EXPECT_THAT(http::Lines(of_rule.fields), HasSubstr("Retry-After: 2800\r\n"));
  EXPECT_THAT(http::Lines(of_rule.fields), Not(HasSubstr("x-rate-limit-limit")));
  const http::Response of_mapping = third("/mapped", "b");
  EXPECT_EQ(of_mapping.body, "of the mapping");
  EXPECT_THAT(http::Lines(of_mapping.fields),
              HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(http::Lines(of_mapping.fields), HasSubstr("x-rate-limit-limit: 2\r\n"));
  const http::Response of_listener = third("/other", "c");
  EXPECT_EQ(of_listener.body, "of the listener");
  EXPECT_THAT(http::Lines(of_listener.fields), HasSubstr("RateLimit: \"plain\";r=0;t=2800\r\n"));
}

// They say what is wrong with the request, which a template about limits cannot.
TEST(AuthRefusals, OtherRefusalsKeepTheProblemDocument) {
  AuthRig rig(kOwnAndPlain, {}, {.refusal = PlainRefusal("of the listener")});
  rig.SetRuleFile(kTwoEach);
  const http::Response missing = rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/own"}});
  EXPECT_EQ(missing.status, 401);
  EXPECT_THAT(http::Lines(missing.fields), HasSubstr("Content-Type: application/problem+json\r\n"));
  EXPECT_THAT(missing.body, HasSubstr("X-API-Key"));
}

TEST(AuthRefusals, AnAllowedRequestHasNoBody) {
  AuthRig rig(kOwnAndPlain, {}, {.refusal = PlainRefusal("of the listener")});
  rig.SetRuleFile(kTwoEach);
  const http::Response response =
      rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/own"}, {"X-API-Key", "a"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("x-ratelimit-remaining-requests: 1\r\n"));
  // A proxy that copies fields by name would pass on the client's own.
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("RateLimit: \r\n"));
}

}  // namespace refusals_test
}  // namespace headgate::front::auth
