#include "headgate/front/admin/routes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headgate/front/admin/rules_json.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::admin {
namespace routes_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;
using ::testing::HasSubstr;

class Rules final : public rule::RuleSet {
 public:
  rule::Rule& Add(const std::string& path, const std::vector<LimitSpec>& specs) {
    rule::Rule rule;
    rule.index = static_cast<uint32_t>(rules_.size());
    rule.domain = "edge";
    rule.path = path;
    for (const LimitSpec& spec : specs)
      rule.limits.push_back({.limit = *algorithm::Limit::Make(spec), .unit = {}});
    rules_.push_back(rule);
    return rules_.back();
  }
  bool Find(std::string_view, std::span<const rule::Entry>, rule::Match&) const override {
    return false;
  }
  std::span<const rule::Rule> rules() const override { return rules_; }

 private:
  std::vector<rule::Rule> rules_;
};

class Admin : public ::testing::Test {
 protected:
  explicit Admin(access::AccessOptions options = {}) : access(std::move(options)) {
    AddRoutes({.rules = [this] { return rules; },
               .metrics = [] { return std::string("headgate_decisions_total 1\n"); },
               .readiness = [this] { return readiness; },
               .passthrough = [this] { return passthrough; }},
              router);
  }

  http::Response Get(const std::string& target) {
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.peer = peer;
    http::Response response;
    router.Handle(request, response, base::Instant::FromNanos(0));
    return response;
  }

  std::shared_ptr<Rules> rules = std::make_shared<Rules>();
  absl::Status readiness;
  bool passthrough = false;
  net::Peer peer;
  access::Access access;
  http::routing::Router router{"Headgate", access};
};

TEST_F(Admin, IsHealthyWhileItLives) {
  readiness = absl::UnavailableError("draining");
  const http::Response response = Get("/healthz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
  EXPECT_THAT(http::Lines(response.fields),
              HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
}

TEST_F(Admin, SaysThatNothingIsRefused) {
  passthrough = true;
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_THAT(Get("/readyz").body, HasSubstr("passthrough: requests are counted"));
  rules = nullptr;
  EXPECT_EQ(Get("/readyz").status, 200) << "requests pass without rules, too";
  readiness = absl::UnavailableError("draining");
  EXPECT_EQ(Get("/readyz").status, 503);
}

TEST_F(Admin, IsReadyWhileItTakesRequests) {
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_EQ(Get("/readyz").body, "ready\n");
  readiness = absl::UnavailableError("draining");
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(
      Get("/readyz").body,
      R"({"type":"about:blank","title":"Service Unavailable","status":503,"detail":"draining"})"
      "\n");
}

TEST_F(Admin, ShowsMetricsAsPrometheusReadsThem) {
  const http::Response response = Get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "headgate_decisions_total 1\n");
  EXPECT_THAT(http::Lines(response.fields),
              HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
}

TEST_F(Admin, RevealsStateOnlyToWhoMaySeeIt) {
  peer.loopback = false;
  EXPECT_EQ(Get("/metrics").status, 403);
  EXPECT_EQ(Get("/v1/rules").status, 403);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 200);
}

class AdminWithCredential : public Admin {
 protected:
  AdminWithCredential() : Admin({.credential = "secret"}) {}
};

TEST_F(AdminWithCredential, RevealsStateOnlyToWhoHasIt) {
  EXPECT_EQ(Get("/metrics").status, 401);
  EXPECT_EQ(Get("/v1/rules").status, 401);
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(Admin, ShowsCostsBySize) {
  rules->Add("api_key", {{.requests = 10, .period = 1s}}).limits[0].cost =
      rule::SizeCost{.per_bytes = 1024, .reserve_bytes = 65'536};
  EXPECT_THAT(
      Get("/v1/rules").body,
      HasSubstr(R"("burst":10,"cost":{"of":"response_bytes","per":1024,"reserve":65536}})"));
}

TEST_F(Admin, ShowsTheStatusesThatALimitCounts) {
  rule::SizeCost cost{.of = rule::SizeCost::Of::kCountedAnswers};
  ASSERT_TRUE(cost.counted.AddHttp("401").ok());
  ASSERT_TRUE(cost.counted.AddHttp("500-503").ok());
  ASSERT_TRUE(cost.counted.AddGrpc("16").ok());
  rules->Add("api_key", {{.requests = 10, .period = 1s}}).limits[0].cost = cost;
  EXPECT_THAT(
      Get("/v1/rules").body,
      HasSubstr(R"("count":{"status":["401","500-503"],"grpc_status":["UNAUTHENTICATED"]})"));
}

TEST_F(Admin, ShowsTheLimitsThatRequestsMayBring) {
  const algorithm::Limit gold = *algorithm::Limit::Make({.requests = 50, .period = 1s});
  rules->Add("api_key", {{.requests = 10, .period = 1s}}).limits[0].given =
      std::make_shared<const rule::GivenLimits>(
          rule::GivenLimits{.max = 100, .plans = {{.name = "go\"ld", .limit = gold}}});
  EXPECT_THAT(Get("/v1/rules").body, HasSubstr(R"("max":100,"plans":{"go\"ld":50}})"));
}

TEST_F(Admin, ShowsRulesWithTheirLimits) {
  rules
      ->Add("api_key",
            {{.requests = 10, .period = 1s}, {.requests = 1000, .period = 90min, .burst = 50}})
      .name = "gold";
  const http::Response response = Get("/v1/rules");
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(
      response.body,
      R"({"rules":[{"domain":"edge","rule":"gold","path":"api_key","limits":[)"
      R"({"algorithm":"token_bucket","requests":10,"period":"1s","burst":10},)"
      R"({"algorithm":"token_bucket","requests":1000,"period":"1h30m","burst":50}],)"
      R"("concurrency":null,"unlimited":false,"shadow":false,"quota":false,"all_or_nothing":false,)"
      R"("sharing":null,"strict":null,"on_store_failure":null,"fallback_share":null,)"
      R"("detailed_metric":false,"value_to_metric":false,)"
      R"("replaces":[],"quota_unit":"requests","rate_limit_fields":null,"refusal":null,)"
      R"("rollout":null,"metadata":null}],)"
      R"("next":null})"
      "\n");
}

TEST_F(Admin, ShowsEachKindOfLimit) {
  const auto shown = [](const LimitSpec& spec) {
    Rules one;
    one.Add("k", {spec});
    std::string out;
    AppendRules(one, 0, out);
    return nlohmann::json::parse(out)["rules"][0]["limits"][0].dump();
  };
  EXPECT_EQ(shown({.algorithm = Algorithm::kLeakyBucket, .requests = 1, .period = 2s}),
            R"({"algorithm":"leaky_bucket","burst":1,"period":"2s","requests":1})");
  EXPECT_EQ(
      shown({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 1, .period = 1s, .burst = 0}),
      R"({"algorithm":"leaky_bucket","burst":0,"period":"1s","queue":true,"requests":1})");
  EXPECT_EQ(
      shown({.algorithm = Algorithm::kFixedWindow,
             .requests = 1,
             .period = 1s,
             .count_denied = true}),
      R"({"algorithm":"fixed_window","align":"epoch","count_denied":true,"period":"1s","requests":1})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kFixedWindow,
                   .requests = 1,
                   .period = 1s,
                   .align = Align::kFirstHit}),
            R"({"algorithm":"fixed_window","align":"first_hit","period":"1s","requests":1})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kFixedWindow,
                   .requests = 1,
                   .period = 1s,
                   .align = Align::kCalendarMonth}),
            R"({"algorithm":"fixed_window","align":"calendar_month","requests":1})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kFixedWindow,
                   .requests = 1,
                   .period = 1s,
                   .align = Align::kCalendarYear}),
            R"({"algorithm":"fixed_window","align":"calendar_year","requests":1})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kFixedWindow,
                   .requests = 1,
                   .period = 24h,
                   .align = Align::kCalendarDay,
                   .zone = base::TimeZone::Load("Europe/Berlin").value()}),
            R"({"algorithm":"fixed_window","align":"calendar_day","requests":1,)"
            R"("timezone":"Europe/Berlin"})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 1, .period = 1s}),
            R"({"algorithm":"sliding_window_counter","period":"1s","requests":1})");
  EXPECT_EQ(shown({.algorithm = Algorithm::kSlidingWindowLog, .requests = 1, .period = 1s}),
            R"({"algorithm":"sliding_window_log","period":"1s","requests":1})");
}

TEST_F(Admin, ShowsHowRulesAreHandled) {
  rule::Rule& rule = rules->Add("path_\"x\"", {});
  rule.unlimited = rule.shadow_mode = rule.quota_mode = true;
  rule.all_or_nothing = rule.detailed_metric = rule.value_to_metric = true;
  rule.sharing = rule::Sharing::kExact;
  rule.on_store_failure = rule::OnStoreFailure::kDeny;
  rule.fallback_share_ppm = 250'000;
  rule.replaces = {"a", "b"};
  rule.metadata_json = R"({"k":[1]})";
  rule.quota_unit = base::QuotaUnit::kTokens;
  rule.rate_limit_fields = base::RateLimitDialect::kOpenai;
  rule.refusal =
      std::make_shared<const rule::Refusal>(*rule::Refusal::Make("text/plain", "wait ${seconds}"));
  const auto json = nlohmann::json::parse(Get("/v1/rules").body);
  EXPECT_EQ(json["rules"][0],
            nlohmann::json::parse(
                R"({"domain":"edge","rule":"path_\"x\"","path":"path_\"x\"",)"
                R"("limits":[],"concurrency":null,"unlimited":true,"shadow":true,"quota":true,)"
                R"("all_or_nothing":true,"sharing":"exact","strict":null,)"
                R"("on_store_failure":"deny","fallback_share":0.25,)"
                R"("detailed_metric":true,"value_to_metric":true,)"
                R"("replaces":["a","b"],"quota_unit":"tokens","rate_limit_fields":"openai",)"
                R"("refusal":{"content_type":"text/plain","body":"wait ${seconds}"},)"
                R"("rollout":null,"metadata":{"k":[1]}})"));
  rule.sharing = rule::Sharing::kLocked;
  const auto locked = nlohmann::json::parse(Get("/v1/rules").body)["rules"][0];
  EXPECT_EQ(locked["sharing"], "strict");
  EXPECT_EQ(locked["strict"], "lock");
}

TEST_F(Admin, ShowsALimitOfConcurrency) {
  rules->Add("client", {}).concurrency =
      rule::ConcurrencyLimit{.max = 20, .ttl = std::chrono::seconds(90)};
  const auto json = nlohmann::json::parse(Get("/v1/rules").body)["rules"][0];
  EXPECT_EQ(json["concurrency"], nlohmann::json::parse(R"({"requests":20,"ttl":"1m30s"})"));
  EXPECT_EQ(json["limits"], nlohmann::json::array());
}

TEST_F(Admin, ShowsManyRulesPageByPage) {
  for (size_t i = 0; i < kRulesPerPage + 2; ++i)
    rules->Add(fmt::format("k{}", i), {{.requests = 1, .period = 1s}});
  const auto first = nlohmann::json::parse(Get("/v1/rules").body);
  EXPECT_EQ(first["rules"].size(), kRulesPerPage);
  EXPECT_EQ(first["next"], kRulesPerPage);
  const auto second =
      nlohmann::json::parse(Get(fmt::format("/v1/rules?from={}", kRulesPerPage)).body);
  EXPECT_EQ(second["rules"].size(), 2);
  EXPECT_EQ(second["rules"][1]["rule"], fmt::format("k{}", kRulesPerPage + 1));
  EXPECT_EQ(second["next"], nullptr);
  EXPECT_EQ(Get("/v1/rules?from=18446744073709551615").body, "{\"rules\":[],\"next\":null}\n");
  for (const char* query :
       {"from=", "from=-1", "from=1x", "from=18446744073709551616", "page=1", ""}) {
    EXPECT_EQ(Get(fmt::format("/v1/rules?{}", query)).status, 400) << query;
  }
}

TEST_F(Admin, HasNoRulesBeforeTheFirstAndIsNotReady) {
  rules = nullptr;
  for (const char* path : {"/v1/rules", "/readyz"}) {
    const http::Response response = Get(path);
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(
        response.body,
        R"({"type":"about:blank","title":"Service Unavailable","status":503,)"
        R"("detail":"no rules are loaded yet",)"
        R"("hint":"the source of the rules holds none yet, or only some with problems; the log names them"})"
        "\n");
  }
}

}  // namespace routes_test
}  // namespace headgate::front::admin
