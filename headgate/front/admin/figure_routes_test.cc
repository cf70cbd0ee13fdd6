#include "headgate/front/admin/figure_routes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "headgate/base/hash_rig.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::admin {
namespace figure_routes_test {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

class Figures : public ::testing::Test {
 protected:
  Figures() {
    AddFigureRoutes(metrics_, &top_, router_);
    rule_.domain = "edge";
    rule_.path = "user";
    top_.OnRule(rule_);
  }

  http::Response Get(const std::string& target) {
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.peer = peer_;
    http::Response response;
    router_.Handle(request, response, now_);
    return response;
  }
  json Top(const std::string& query = "") {
    const http::Response response = Get("/v1/top" + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  void Tick() {
    now_ = now_ + 1s;
    top_.Tick(now_);
  }
  void Decide(std::string_view user, limiter::Outcome outcome = limiter::Outcome::kAllowed) {
    const rule::Entry entry{"user", user};
    rule::Match match;
    match.rule = &rule_;
    match.step_count = 1;
    top_.OnDecision(0, {.outcome = outcome,
                        .cost = 3,
                        .rule = &rule_,
                        .series = top_.OnRule(rule_),
                        .domain = "edge",
                        .entries = {&entry, 1},
                        .match = &match});
  }

  rule::Rule rule_;
  observe::Metrics metrics_{{}};
  observe::TopKeys top_{{.secret = base::SecretFromSeed(1)}};
  net::Peer peer_;
  access::Access access_{{}};
  http::routing::Router router_{"Headgate", access_};
  base::Instant now_ = kStart;
};

TEST_F(Figures, ShowsMetricsAsJson) {
  metrics_.OnOwnLimits(0, limiter::Outcome::kDenied, 4);
  const http::Response response = Get("/v1/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Content-Type: application/json\r\n"));
  const json first = json::parse(response.body)["metrics"][0];
  EXPECT_EQ(first["name"], "headgate_decisions_total");
  EXPECT_EQ(first["series"][0]["labels"]["rule"], "CL.THROTTLE");
  EXPECT_EQ(first["series"][0]["value"], 4);
}

TEST_F(Figures, ShowsTheTopKeys) {
  EXPECT_EQ(Top(), json::parse(R"({"by":"requests","domain":null,"rule":null,"seconds":0,)"
                               R"("total":0,"error_max":0,"keys":[]})"));
  Tick();
  Decide("ann");
  Decide("ann", limiter::Outcome::kDenied);
  Decide("bob");
  Tick();
  EXPECT_EQ(Top("?count=1"),
            json::parse(R"({"by":"requests","domain":null,"rule":null,"seconds":1.0,)"
                        R"("total":3,"error_max":0,"keys":[{"key":"edge|user=ann","domain":"edge",)"
                        R"("rule":"user","count":2,"error":0,"allowed":1,"denied":1,"cost":6}]})"));
  EXPECT_EQ(Top("?by=denials")["keys"].size(), 1u);
  EXPECT_EQ(Top("?by=cost")["total"], 9);
}

TEST_F(Figures, ShowsTheTopKeysOfOneRule) {
  EXPECT_EQ(Top("?domain=edge&rule=user&by=denials"),
            json::parse(R"({"by":"denials","domain":"edge","rule":"user","seconds":0,)"
                        R"("total":0,"error_max":0,"keys":[]})"));
  Tick();
  Decide("ann", limiter::Outcome::kDenied);
  Tick();
  EXPECT_EQ(Top("?domain=edge&rule=user&by=denials")["keys"][0]["key"], "edge|user=ann");
  EXPECT_EQ(Get("/v1/top?domain=edge&rule=none").status, 404);
  EXPECT_EQ(Get("/v1/top?rule=user").status, 404);
  EXPECT_EQ(Top("?rule=CL.THROTTLE")["domain"], "");
}

TEST_F(Figures, AnyBytesOfAKeyAreValidJson) {
  Top();
  Tick();
  const std::string hostile("\"\\\0\n\x1b</script>\xc3\x28\xed\xa0\x80\xff|=%{}", 25);
  Decide(hostile);
  Decide(std::string(1000, '\xff'));
  Tick();
  const json keys = Top()["keys"];
  ASSERT_EQ(keys.size(), 2u);
  const std::string key = std::min(keys[0]["key"], keys[1]["key"]);
  EXPECT_EQ(key, "edge|user=\"\\%00%0a%1b</script>%c3(%ed%a0%80%ff%7c%3d%25%7b%7d");
}

TEST_F(Figures, RefusesOtherQueries) {
  for (const char* query : {"?by=name", "?count=x", "?count=-1", "?domain=edge", "?document=f",
                            "?by=cost&by=cost", "?by=%"}) {
    const http::Response response = Get(fmt::format("/v1/top{}", query));
    EXPECT_EQ(response.status, 400) << query;
    EXPECT_THAT(response.body, HasSubstr("by=requests|denials|cost")) << query;
  }
}

TEST_F(Figures, SaysWhenTooManyListsAreAskedFor) {
  for (size_t i = 0; i < observe::TopKeys::kListsMax; ++i) {
    rule::Rule rule;
    rule.domain = "edge";
    rule.path = fmt::format("rule{}", i);
    top_.OnRule(rule);
    Top(fmt::format("?domain=edge&rule=rule{}", i));
  }
  EXPECT_EQ(Get("/v1/top").status, 503);
}

TEST_F(Figures, RevealsStateOnlyToWhoMaySeeIt) {
  peer_.loopback = false;
  EXPECT_EQ(Get("/v1/metrics").status, 403);
  EXPECT_EQ(Get("/v1/top").status, 403);
}

TEST_F(Figures, HasNoTopKeysWithoutRules) {
  http::routing::Router router{"Headgate", access_};
  AddFigureRoutes(metrics_, nullptr, router);
  EXPECT_EQ(router.routes().size(), 1u);
}

}  // namespace figure_routes_test
}  // namespace headgate::front::admin
