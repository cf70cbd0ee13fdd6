#include "headgate/wire/preflight.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

namespace headgate::wire {
namespace preflight_test {

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

// As Chromium 120 and Firefox 115 send it, behind a proxy.
const Fields kSent = {{"Host", "api.example.com"},
                      {"Connection", "keep-alive"},
                      {"Accept", "*/*"},
                      {"Access-Control-Request-Method", "POST"},
                      {"Access-Control-Request-Headers", "content-type,x-api-key"},
                      {"Origin", "https://app.example.com"},
                      {"User-Agent", "Mozilla/5.0"},
                      {"Sec-Fetch-Mode", "cors"},
                      {"Sec-Fetch-Site", "cross-site"},
                      {"Referer", "https://app.example.com/"},
                      {"Accept-Encoding", "gzip, deflate, br"},
                      {"Accept-Language", "en"},
                      {"Content-Length", "0"},
                      {"X-Forwarded-For", "203.0.113.7"},
                      {"X-Forwarded-Method", "OPTIONS"}};

Fields With(std::string_view name, std::string_view value) {
  Fields fields = kSent;
  fields.emplace_back(name, value);
  return fields;
}

Fields Without(std::string_view name) {
  Fields fields = kSent;
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  return fields;
}

Fields Instead(std::string_view name, std::string_view value) {
  Fields fields = Without(name);
  fields.emplace_back(name, value);
  return fields;
}

TEST(Preflight, IsTheQuestionOfABrowser) {
  EXPECT_TRUE(IsPreflight("OPTIONS", kSent));
  EXPECT_TRUE(IsPreflight("OPTIONS", Instead("Origin", "null"))) << "a sandboxed frame";
  EXPECT_TRUE(IsPreflight("OPTIONS", Instead("Origin", "http://localhost:3000")));
  EXPECT_TRUE(IsPreflight("OPTIONS", Instead("Origin", "http://[::1]:3000")));
  EXPECT_TRUE(IsPreflight("OPTIONS", Instead("Origin", "chrome-extension://abcdef")));
  EXPECT_TRUE(IsPreflight("OPTIONS", Without("Access-Control-Request-Headers")));
  EXPECT_TRUE(IsPreflight("OPTIONS", With("Access-Control-Request-Private-Network", "true")));
}

TEST(Preflight, LacksNothingOfTheQuestion) {
  EXPECT_FALSE(IsPreflight("OPTIONS", Fields{}));
  EXPECT_FALSE(IsPreflight("OPTIONS", Without("Origin")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Without("Access-Control-Request-Method")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Instead("Origin", "")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Instead("Origin", "https://a, https://b")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Instead("Origin", "https://a/b")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Instead("Access-Control-Request-Method", "")));
  EXPECT_FALSE(IsPreflight("OPTIONS", Instead("Access-Control-Request-Method", "GET, POST")));
}

// Backends read `options` as OPTIONS, but browsers do not send it.
TEST(Preflight, HasTheMethodOptions) {
  for (const std::string_view method : {"options", "Options", "GET", "POST", "HEAD", ""})
    EXPECT_FALSE(IsPreflight(method, kSent)) << method;
}

TEST(Preflight, HasNothingMoreThanTheQuestion) {
  for (const auto& [name, value] : Fields{{"Authorization", "Bearer k1"},
                                          {"Cookie", "sid=1"},
                                          {"cookie", ""},
                                          {"Content-Type", "application/json"},
                                          {"Content_Type", "application/json"},
                                          {"Content-Encoding", "gzip"},
                                          {"Transfer-Encoding", "chunked"},
                                          {"Content-Length", "1"},
                                          {"Content-Length", "00"},
                                          {"Expect", "100-continue"},
                                          {"Upgrade", "websocket"},
                                          {"X-HTTP-Method-Override", "POST"},
                                          {"x_http_method_override", "POST"},
                                          {"X-HTTP-Method", "POST"},
                                          {"X-Method-Override", "POST"},
                                          {"Origin", "https://app.example.com"},
                                          {"origin", "https://other.example.com"},
                                          {"Access-Control-Request-Method", "POST"},
                                          {"Access_Control_Request_Method", "POST"},
                                          {"access-control-request-headers", "x"}}) {
    EXPECT_FALSE(IsPreflight("OPTIONS", With(name, value))) << name;
  }
}

TEST(Preflight, FieldsOfBrowsersNameNoClient) {
  for (const std::string_view name : {"User-Agent", "accept", "Sec-Fetch-Site", "sec-ch-ua",
                                      "Access-Control-Request-Method", "Origin"}) {
    EXPECT_TRUE(IsOfBrowsers(name)) << name;
  }
  for (const std::string_view name : {"X-API-Key", "Authorization", "Secret", "X-Real-IP", ""})
    EXPECT_FALSE(IsOfBrowsers(name)) << name;
}

}  // namespace preflight_test
}  // namespace headgate::wire
