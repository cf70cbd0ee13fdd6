#include "headgate/front/api/handler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "headgate/front/api/check_rig.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::api {
namespace handler_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

// One rule for each key, for all its values.
class Rules final : public rule::RuleSet {
 public:
  rule::Rule& Add(const std::string& key, std::vector<LimitSpec> specs) {
    rule::Rule rule;
    rule.index = static_cast<uint32_t>(rules_.size());
    rule.domain = "default";
    rule.path = rule.identity = key;
    for (const LimitSpec& spec : specs)
      rule.limits.push_back({.limit = *algorithm::Limit::Make(spec), .unit = {}});
    rule.unlimited = specs.empty();
    rules_.push_back(rule);
    return rules_.back();
  }
  void MakeAllOrNothing() { all_or_nothing_ = true; }

  bool Find(std::string_view domain, std::span<const rule::Entry> entries,
            rule::Match& match) const override {
    match.rule = nullptr;
    match.all_or_nothing = all_or_nothing_;
    match.step_count = static_cast<uint32_t>(entries.size());
    match.steps = {};
    if (domain != "default") return false;
    for (const rule::Rule& rule : rules_) {
      if (rule.path == entries[0].key) match.rule = &rule;
    }
    return true;
  }
  std::span<const rule::Rule> rules() const override { return rules_; }

 private:
  std::vector<rule::Rule> rules_;
  bool all_or_nothing_ = false;
};

std::map<std::string, std::string> FieldsOf(const http::Response& response) {
  std::map<std::string, std::string> fields;
  for (const auto [name, value] : response.fields) fields.emplace(name, value);
  return fields;
}

std::string Body(const std::string& key, uint64_t cost = 1) {
  return fmt::format(R"({{"descriptors":[{{"entries":[{{"key":"{}","value":"x"}}],"cost":{}}}]}})",
                     key, cost);
}

std::string Body2(const std::string& key_a, const std::string& key_b) {
  return fmt::format(R"({{"descriptors":[{{"entries":[{{"key":"{}","value":"x"}}]}},)"
                     R"({{"entries":[{{"key":"{}","value":"x"}}]}}]}})",
                     key_a, key_b);
}

struct Server : CheckRig {
  explicit Server(std::shared_ptr<Rules> rules, answer::LimitAnswerOptions check_options = {})
      : CheckRig(std::move(rules), check_options, kStart) {}
  Server(std::shared_ptr<Rules> rules, access::AccessOptions access_options)
      : CheckRig(std::move(rules), {}, kStart, std::move(access_options)) {}

  http::Response Post(const std::string& path, const std::string& body,
                      base::Instant now = kStart) {
    http::Request request;
    request.method = "POST";
    request.target = path;
    request.fields = {{"Content-Type", "application/json"}};
    request.body = body;
    request.peer = peer;
    http::Response response;
    router.Handle(request, response, now);
    return response;
  }

  net::Peer peer;
};

std::shared_ptr<Rules> TenPer20s() {
  auto rules = std::make_shared<Rules>();
  rules->Add("api_key", {{.requests = 10, .period = 20s}});
  return rules;
}

// A client that forgets the domain would pass forever without anybody noticing.
TEST(Check, SaysThatNoRuleHasTheDomain) {
  const std::string limited = R"({"descriptors":[{"entries":[{"key":"api_key","value":"x"}]}]})";
  const std::string others =
      R"({"domain":"shop","descriptors":[{"entries":[{"key":"a","value":""}]}]})";
  const std::string with_limit =
      R"({"domain":"shop","descriptors":[{"entries":[{"key":"a","value":""}],)"
      R"("limit":{"requests_per_unit":9,"unit":"day"}}]})";
  const std::string no_such =
      R"(],"hint":"no rule has this domain, so nothing limits the request; GET /v1/rules lists )"
      R"(the domains that have rules"})";
  const std::string no_default =
      R"(],"hint":"no rule has the domain \"default\", which is used if \"domain\" is missing, )"
      R"(so nothing limits the request; GET /v1/rules lists the domains that have rules"})";
  Server server(TenPer20s());
  CheckRig edge({.requests = 10, .period = 20s}, kStart);
  for (const std::string path : {"/v1/check", "/v1/peek", "/v1/reserve", "/v1/acquire"}) {
    EXPECT_THAT(server.Post(path, limited).body, Not(HasSubstr("hint"))) << path;
    EXPECT_THAT(server.Post(path, Body("other")).body, Not(HasSubstr("hint"))) << path;
    const http::Response unknown = server.Post(path, others);
    EXPECT_EQ(unknown.status, 200) << path;
    EXPECT_THAT(unknown.body, HasSubstr(no_such.substr(0, no_such.size() - 1))) << path;
    http::Response missing;
    edge.router.Handle(RequestOf(path, limited), missing, kStart);
    EXPECT_THAT(missing.body, HasSubstr(no_default.substr(0, no_default.size() - 1))) << path;
  }
  // As in Envoy's service, a limit of the request counts only in a domain that has rules.
  EXPECT_THAT(server.Post("/v1/check", with_limit).body, HasSubstr("hint"));
  EXPECT_THAT(server.Post("/v1/checks", R"({"checks":[)" + others + "," + limited + "]}").body,
              HasSubstr(no_such + R"(,{"status":200,"allowed":true)"));
}

TEST(Check, LetsTenThroughAndThenSaysWhenToComeBack) {
  Server server(TenPer20s());
  for (int i = 9; i >= 0; --i) {
    const http::Response response = server.Post("/v1/check", Body("api_key"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(
        response.body,
        fmt::format(
            R"({{"allowed":true,"decisions":[{{"allowed":true,"limit":10,"remaining":{},)"
            R"("retry_after_ms":0,"reset_after_ms":{},"wait_ms":0,"rule":"api_key","shadow":false}}]}})"
            "\n",
            i, (10 - i) * 2000));
    EXPECT_EQ(http::Lines(response.fields),
              fmt::format("Content-Type: application/json\r\n"
                          "RateLimit-Policy: \"api_key\";q=10;w=20\r\n"
                          "RateLimit: \"api_key\";r={};t=2\r\n"
                          "X-RateLimit-Limit: 10\r\n"
                          "X-RateLimit-Remaining: {}\r\n"
                          "X-RateLimit-Reset: {}\r\n",
                          i, i, (10 - i) * 2));
  }
  const http::Response denied = server.Post("/v1/check", Body("api_key"), kStart + 500ms);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(
      denied.body,
      R"({"allowed":false,"decisions":[{"allowed":false,"limit":10,"remaining":0,)"
      R"("retry_after_ms":1500,"reset_after_ms":19500,"wait_ms":0,"rule":"api_key","shadow":false}]})"
      "\n");
  EXPECT_EQ(http::Lines(denied.fields),
            "Content-Type: application/json\r\n"
            "RateLimit-Policy: \"api_key\";q=10;w=20\r\n"
            "RateLimit: \"api_key\";r=0;t=2\r\n"
            "X-RateLimit-Limit: 10\r\n"
            "X-RateLimit-Remaining: 0\r\n"
            "X-RateLimit-Reset: 20\r\n"
            "Retry-After: 2\r\n");
}

TEST(Check, NeverTellsWhoNeverFitsToRetry) {
  Server server(TenPer20s());
  const http::Response response = server.Post("/v1/check", Body("api_key", 11));
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.body, HasSubstr(R"("retry_after_ms":null)"));
  EXPECT_FALSE(FieldsOf(response).contains("Retry-After"));
}

TEST(Check, LetsThroughWhatNoRuleLimitsAndSaysNothingOfLimits) {
  auto rules = TenPer20s();
  rules->Add("free", {});
  Server server(rules);
  for (const char* key : {"other", "free"}) {
    const http::Response response = server.Post("/v1/check", Body(key));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(http::Lines(response.fields), "Content-Type: application/json\r\n");
  }
}

TEST(Check, AddsOnlyTheFieldsThatWereChosen) {
  Server server(TenPer20s(), {.dialect = wire::RateLimitDialect::kTwitter});
  EXPECT_EQ(http::Lines(server.Post("/v1/check", Body("api_key")).fields),
            "Content-Type: application/json\r\nx-rate-limit-limit: 10\r\n"
            "x-rate-limit-remaining: 9\r\nx-rate-limit-reset: 1790000002\r\n");
}

TEST(Check, TakesALimitFromTheRequest) {
  Server server(TenPer20s());
  const std::string body = R"({"descriptors":[{"entries":[{"key":"api_key","value":"x"}],)"
                           R"("limit":{"requests_per_unit":1,"unit":"hour"}}]})";
  EXPECT_THAT(http::Lines(server.Post("/v1/check", body).fields),
              HasSubstr("RateLimit-Policy: \"request\";q=1;w=3600\r\n"));
  EXPECT_EQ(server.Post("/v1/check", body).status, 429);
}

TEST(Check, HasACostOf1AndPeekOf0) {
  Server server(TenPer20s());
  const std::string body = R"({"descriptors":[{"entries":[{"key":"api_key","value":"x"}]}]})";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server.Post("/v1/check", body).status, 200);
  EXPECT_EQ(server.Post("/v1/check", body).status, 429);
  EXPECT_EQ(server.Post("/v1/peek", body).status, 200);
  EXPECT_EQ(server.Post("/v1/peek", Body("api_key", 1)).status, 429);
}

TEST(Peek, ConsumesNothing) {
  Server server(TenPer20s());
  for (int i = 0; i < 20; ++i) {
    const http::Response response = server.Post("/v1/peek", Body("api_key", 10));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(FieldsOf(response)["X-RateLimit-Remaining"], "0");
  }
  EXPECT_EQ(server.Post("/v1/check", Body("api_key", 10)).status, 200);
  EXPECT_EQ(FieldsOf(server.Post("/v1/peek", Body("api_key", 1)))["Retry-After"], "2");
}

TEST(Refund, GivesBackWhatWasTaken) {
  Server server(TenPer20s());
  server.Post("/v1/check", Body("api_key", 10));
  const http::Response response = server.Post("/v1/refund", Body("api_key", 4));
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"("remaining":4)"));
  EXPECT_EQ(server.Post("/v1/check", Body("api_key", 4)).status, 200);
  EXPECT_EQ(server.Post("/v1/check", Body("api_key", 1)).status, 429);
}

TEST(Refund, WithAnIdCountsOnce) {
  Server server(TenPer20s());
  const auto body = [](int cost) {
    return R"({"id":"a","cost":)" + std::to_string(cost) +
           R"(,"descriptors":[{"entries":[{"key":"api_key","value":"v"}]}]})";
  };
  server.Post("/v1/check", body(10));
  for (int i = 0; i < 2; ++i) {
    const http::Response response = server.Post("/v1/refund", body(4));
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, HasSubstr(R"("remaining":4)"));
  }
  EXPECT_THAT(server.Post("/v1/refund", body(3)).body, HasSubstr(R"("remaining":7)"))
      << "another cost is another refund";
  EXPECT_THAT(server.Post("/v1/reset", body(1)).body,
              HasSubstr("only checks, reservations and refunds have an id"));
}

TEST(Refund, IsAConflictForAQueue) {
  auto rules = std::make_shared<Rules>();
  rules->Add(
      "queue",
      {{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 1, .period = 1s, .burst = 5}});
  Server server(rules);
  const http::Response response = server.Post("/v1/refund", Body("queue"));
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(
      response.body,
      R"({"type":"about:blank","title":"Conflict","status":409,)"
      R"("detail":"rule queue: a queue takes nothing back: its requests have been promised their turn"})"
      "\n");
}

TEST(Reset, MakesTheBucketAsIfNeverUsed) {
  Server server(TenPer20s());
  server.Post("/v1/check", Body("api_key", 10));
  const http::Response response = server.Post("/v1/reset", Body("api_key"));
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"("remaining":10,"retry_after_ms":0,"reset_after_ms":0)"));
  EXPECT_EQ(server.Post("/v1/check", Body("api_key", 10)).status, 200);
}

TEST(ChangesOfState, AreForWhoMayMakeThem) {
  Server server(TenPer20s());
  server.peer.loopback = false;
  for (const char* path : {"/v1/refund", "/v1/reset"})
    EXPECT_EQ(server.Post(path, Body("api_key")).status, 403);
  for (const char* path : {"/v1/check", "/v1/peek"})
    EXPECT_EQ(server.Post(path, Body("api_key")).status, 200);
  Server locked(TenPer20s(), access::AccessOptions{.credential = "secret"});
  for (const char* path : {"/v1/refund", "/v1/reset"})
    EXPECT_EQ(locked.Post(path, Body("api_key")).status, 401);
  for (const char* path : {"/v1/check", "/v1/peek"})
    EXPECT_EQ(locked.Post(path, Body("api_key")).status, 200);
}

TEST(Errors, AreProblemsWithTheReason) {
  Server server(TenPer20s());
  for (const char* path : {"/v1/check", "/v1/peek", "/v1/refund", "/v1/reset"}) {
    const http::Response response = server.Post(path, R"({"descriptors":[{"key":"a"}]})");
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(http::Lines(response.fields), "Content-Type: application/problem+json\r\n");
    EXPECT_EQ(response.body, R"({"type":"about:blank","title":"Bad Request","status":400,)"
                             R"("detail":"descriptors[0] has no field \"key\"",)"
                             R"("hint":"its fields are entries, cost, limit"})"
                             "\n");
  }
}

TEST(Errors, AreUnavailableBeforeTheFirstRules) {
  Server server(nullptr);
  const http::Response response = server.Post("/v1/check", Body("api_key"));
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(
      response.body,
      R"({"type":"about:blank","title":"Service Unavailable","status":503,)"
      R"("detail":"no rate limit configuration loaded",)"
      R"("hint":"the source of the rules holds none yet, or only some with problems; the log names them"})"
      "\n");
}

TEST(Answers, AreJsonWhateverTheNames) {
  auto rules = std::make_shared<Rules>();
  rules->Add("k", {{.requests = 1, .period = 1s}}).name = "a\"b\\c\r\nX-Evil: 1 é\xff";
  Server server(rules);
  const http::Response response = server.Post("/v1/check", Body("k"));
  const auto json = nlohmann::json::parse(response.body);
  EXPECT_EQ(json["decisions"][0]["rule"], "a\"b\\c\r\nX-Evil: 1 é\uFFFD");
  EXPECT_EQ(FieldsOf(response)["RateLimit"], R"("a\"b\\c%0D%0AX-Evil: 1 %C3%A9%FF";r=0;t=1)");
}

// ---- Retry-After is honest: a client that waits for exactly this many seconds is admitted

struct Waiting {
  const char* name;
  LimitSpec spec;
};
const Waiting kWaiting[] = {
    {"token_bucket", {.requests = 10, .period = 20s}},
    {"token_bucket_burst", {.requests = 3, .period = 7s, .burst = 11}},
    {"token_bucket_fast", {.requests = 1000, .period = 1s, .burst = 5}},
    {"token_bucket_slow", {.requests = 1, .period = 24h * 30}},
    {"leaky_bucket",
     {.algorithm = Algorithm::kLeakyBucket, .requests = 7, .period = 60s, .burst = 3}},
    {"queue",
     {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 7, .period = 10s, .burst = 4}},
    {"fixed_window", {.algorithm = Algorithm::kFixedWindow, .requests = 5, .period = 10s}},
    {"fixed_window_counting_denied",
     {.algorithm = Algorithm::kFixedWindow, .requests = 5, .period = 10s, .count_denied = true}},
    {"fixed_window_first_hit",
     {.algorithm = Algorithm::kFixedWindow,
      .requests = 5,
      .period = 10s,
      .align = Align::kFirstHit}},
    {"fixed_window_month",
     {.algorithm = Algorithm::kFixedWindow,
      .requests = 5,
      .period = 1s,
      .align = Align::kCalendarMonth}},
    {"sliding_window_counter",
     {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 9, .period = 13s}},
    {"sliding_window_log",
     {.algorithm = Algorithm::kSlidingWindowLog, .requests = 6, .period = 11s}},
};

class RetryAfterIsHonest : public ::testing::TestWithParam<Waiting> {};

TEST_P(RetryAfterIsHonest, AClientThatWaitsExactlyThatLongIsAllowed) {
  auto rules = std::make_shared<Rules>();
  rules->Add("k", {GetParam().spec});
  Server server(rules);
  base::Instant now = kStart;
  uint64_t random = 42;
  const auto next = [&](uint64_t below) {
    random = random * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return (random >> 33) % below;
  };
  const auto step_max =
      std::min<base::Duration>(900ms, GetParam().spec.period / GetParam().spec.requests);
  constexpr base::Instant kYear2100 = base::Instant::FromNanos(4'102'444'800'000'000'000);
  int denials = 0;
  for (int i = 0; i < 1000 && now < kYear2100; ++i) {
    now += base::Duration(next(static_cast<uint64_t>(step_max.count())));
    const std::string body = Body("k", 1 + next(4));
    const http::Response response = server.Post("/v1/check", body, now);
    auto fields = FieldsOf(response);
    ASSERT_EQ(fields.contains("Retry-After"),
              response.status == 429 &&
                  response.body.find(R"("retry_after_ms":null)") == std::string::npos);
    if (!fields.contains("Retry-After")) continue;
    ++denials;
    const int64_t seconds = std::stoll(fields["Retry-After"]);
    ASSERT_GE(seconds, 1);
    now += std::chrono::seconds(seconds);
    ASSERT_EQ(server.Post("/v1/check", body, now).status, 200)
        << "after " << seconds << " s at step " << i;
  }
  EXPECT_GT(denials, 100);
}

INSTANTIATE_TEST_SUITE_P(All, RetryAfterIsHonest, ::testing::ValuesIn(kWaiting),
                         [](const auto& waiting) { return std::string(waiting.param.name); });

// A request matches `fast`, which denies it, and `slow`, which allows one request per hour and so
// is used up by the denied request.
TEST(RetryAfter, CountsWhatTheDeniedRequestItselfHasSpent) {
  for (const bool all_or_nothing : {false, true}) {
    auto rules = std::make_shared<Rules>();
    rules->Add("fast", {{.requests = 1, .period = 10s}});
    rules->Add("slow", {{.requests = 1, .period = 1h}});
    if (all_or_nothing) rules->MakeAllOrNothing();
    Server server(rules);
    EXPECT_EQ(server.Post("/v1/check", Body("fast")).status, 200);
    auto fields = FieldsOf(server.Post("/v1/check", Body2("fast", "slow")));
    const int64_t seconds = std::stoll(fields["Retry-After"]);
    EXPECT_EQ(seconds, all_or_nothing ? 10 : 3600);
    EXPECT_EQ(
        server.Post("/v1/check", Body2("fast", "slow"), kStart + std::chrono::seconds(seconds))
            .status,
        200);
  }
}

TEST(ChangesOfState, ThatFindNoRuleSaySo) {
  Server server(TenPer20s());
  for (const char* path : {"/v1/refund", "/v1/reset"}) {
    const http::Response response = server.Post(path, Body("unknown"));
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_THAT(
        response.body,
        HasSubstr(R"("detail":"no rule applies to any of the descriptors: nothing was changed")"));
    EXPECT_THAT(response.body,
                HasSubstr(R"("hint":"`headgate explain --rules PATH DOMAIN k=v` says why")"));
  }
}

}  // namespace handler_test
}  // namespace headgate::front::api
