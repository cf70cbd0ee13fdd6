#include "headgate/front/api/permit_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headgate/front/api/check_rig.h"
#include "headgate/front/api/shared_check_rig.h"
#include "headgate/rule/read/load.h"
#include "headgate/testing/permit_rules.h"

namespace headgate::front::api {
namespace permit_handler_test {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

json Body(json more = json::object(), const std::string& key = "api_key") {
  json body = {{"domain", "edge"},
               {"descriptors", {{{"entries", {{{"key", key}, {"value", "ann"}}}}}}}};
  body.update(more);
  return body;
}

// The same server with permits in memory, and in a store that answers later.
struct Desk {
  virtual ~Desk() = default;
  virtual http::Response Post(const std::string& path, const std::string& body) = 0;

  json Ask(const std::string& path, const json& body) {
    last = Post(path, body.dump());
    return json::parse(last.body);
  }
  json Acquire(const json& more = json::object(), const std::string& key = "api_key") {
    return Ask("/v1/acquire", Body(more, key));
  }
  bool Release(const json& id, const std::string& key = "api_key") {
    const json answer = Ask("/v1/release", Body({{"id", id}}, key));
    EXPECT_EQ(last.status, 200) << answer;
    return answer["released"];
  }
  std::string Field(const std::string& name) const {
    return std::string(last.fields.Find(name).value_or(""));
  }

  http::Response last;
  base::Instant now = kStart;
};

struct MemoryDesk final : Desk {
  explicit MemoryDesk(std::shared_ptr<const rule::RuleSet> rules = testing::PermitRules("edge",
                                                                                        "api_key"))
      : rig(std::move(rules), {}, kStart) {}
  http::Response Post(const std::string& path, const std::string& body) override {
    http::Response response;
    rig.router.Handle(RequestOf(path, body), response, now);
    return response;
  }
  CheckRig rig;
};

struct SharedDesk final : Desk {
  explicit SharedDesk(std::shared_ptr<const rule::RuleSet> rules = testing::PermitRules("edge",
                                                                                        "api_key"))
      : rig(std::move(rules), now) {}
  http::Response Post(const std::string& path, const std::string& body) override {
    return rig.AnswerTo(path, body);
  }
  SharedCheckRig rig;
  testing::ManualSharedStore& shared = rig.shared;
};

template <typename T>
struct Permits : ::testing::Test {
  T desk;
};
using Desks = ::testing::Types<MemoryDesk, SharedDesk>;
TYPED_TEST_SUITE(Permits, Desks);

TYPED_TEST(Permits, AreAcquiredUntilTheLimitAndAgainAfterARelease) {
  const json first = this->desk.Acquire();
  EXPECT_EQ(this->desk.last.status, 200);
  EXPECT_EQ(first["allowed"], true);
  EXPECT_EQ(first["in_flight"], 1);
  EXPECT_EQ(first["limit"], 2);
  EXPECT_EQ(first["expires_in_ms"], 30'000);
  const json second = this->desk.Acquire();
  EXPECT_NE(first["id"], second["id"]);
  const json third = this->desk.Acquire();
  EXPECT_EQ(this->desk.last.status, 429);
  EXPECT_EQ(third["allowed"], false);
  EXPECT_EQ(third["in_flight"], 2);
  EXPECT_FALSE(third.contains("expires_in_ms"));
  EXPECT_EQ(this->desk.Field("Retry-After"), "1");
  EXPECT_TRUE(this->desk.Release(first["id"]));
  EXPECT_EQ(this->desk.Acquire()["allowed"], true);
}

TYPED_TEST(Permits, AReleaseSaysWhetherThePermitWasHeld) {
  const json id = this->desk.Acquire()["id"];
  const json answer = this->desk.Ask("/v1/release", Body({{"id", id}}));
  EXPECT_EQ(answer,
            json({{"released", true},
                  {"permits",
                   {{{"released", true}, {"in_flight", 0}, {"limit", 2}, {"rule", "api_key"}}}}}));
  EXPECT_FALSE(this->desk.Release(id));
  EXPECT_FALSE(this->desk.Release("never-seen"));
  EXPECT_FALSE(this->desk.Release(id, "plain"));
}

TYPED_TEST(Permits, AnIdOfTheServerSaysNothingAboutTheNext) {
  const std::string first = this->desk.Acquire()["id"];
  const std::string second = this->desk.Acquire()["id"];
  for (const std::string& id : {first, second})
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}"));  // 128 bits
  size_t equal = 0;
  for (size_t i = 0; i < first.size(); ++i) equal += first[i] == second[i] ? 1u : 0u;
  // 2 of 32 random digits are equal on average; 20 or more with a probability below 1e-16.
  EXPECT_LT(equal, 20u) << first << ' ' << second;
}

TYPED_TEST(Permits, ACostOfZeroLooksAndTakesNone) {
  const json answer = this->desk.Acquire({{"id", "a"}, {"cost", 0}});
  EXPECT_EQ(answer["allowed"], true);
  EXPECT_EQ(answer["in_flight"], 0);
  EXPECT_TRUE(answer.contains("expires_in_ms"));
  EXPECT_EQ(answer["expires_in_ms"], nullptr);
  EXPECT_FALSE(this->desk.Release("a"));
}

TYPED_TEST(Permits, AnIdOfTheCallerHoldsOnePermitHoweverOftenItIsAcquired) {
  for (int i = 0; i < 3; ++i) {
    const json answer = this->desk.Acquire({{"id", "job-7"}});
    EXPECT_EQ(answer["allowed"], true);
    EXPECT_EQ(answer["id"], "job-7");
    EXPECT_EQ(answer["in_flight"], 1);
  }
  EXPECT_EQ(this->desk.Acquire({{"id", "job-8"}})["in_flight"], 2);
  EXPECT_EQ(this->desk.Acquire({{"id", "job-9"}})["allowed"], false);
  // Still held by the first.
  EXPECT_EQ(this->desk.Acquire({{"id", "job-7"}})["allowed"], true);
  EXPECT_TRUE(this->desk.Release("job-7"));
  EXPECT_EQ(this->desk.Acquire({{"id", "job-9"}})["allowed"], true);
}

TYPED_TEST(Permits, EndAfterTheirTtlAndARepetitionRenewsThem) {
  EXPECT_EQ(this->desk.Acquire({{"id", "a"}, {"ttl_ms", 5000}})["expires_in_ms"], 5000);
  EXPECT_EQ(this->desk.Acquire({{"id", "b"}, {"ttl_ms", 60'000}})["expires_in_ms"], 30'000);
  this->desk.now += 4s;
  this->desk.Acquire({{"id", "a"}, {"ttl_ms", 5000}});
  this->desk.now += 4s;
  EXPECT_EQ(this->desk.Acquire({{"id", "c"}})["allowed"], false);
  this->desk.now += 1s;
  EXPECT_EQ(this->desk.Acquire({{"id", "c"}})["allowed"], true);
  EXPECT_FALSE(this->desk.Release("a"));
}

TYPED_TEST(Permits, ABucketBesideThemMustAllowToo) {
  const json first = this->desk.Acquire(json::object(), "both");
  EXPECT_EQ(first["allowed"], true);
  EXPECT_EQ(this->desk.Acquire(json::object(), "both")["allowed"], false);
  // The permit of the denied request was given back.
  const json answer = this->desk.Ask("/v1/release", Body({{"id", first["id"]}}, "both"));
  EXPECT_EQ(answer["permits"][0]["in_flight"], 0);
}

TYPED_TEST(Permits, WithoutARuleNothingIsHeld) {
  const json answer = this->desk.Acquire(json::object(), "unknown");
  EXPECT_EQ(answer["allowed"], true);
  EXPECT_EQ(answer["in_flight"], nullptr);
  EXPECT_EQ(answer["limit"], nullptr);
  const json plain = this->desk.Acquire(json::object(), "plain");
  EXPECT_EQ(plain["decisions"][0]["remaining"], 4);
  EXPECT_EQ(plain["limit"], nullptr);
}

TYPED_TEST(Permits, ACheckOnlyLooks) {
  for (int i = 0; i < 5; ++i) {
    const json answer = this->desk.Ask("/v1/check", Body());
    EXPECT_EQ(answer["allowed"], true);
    EXPECT_EQ(answer["decisions"][0]["limit"], 2);
    EXPECT_EQ(answer["decisions"][0]["remaining"], 2);
  }
  this->desk.Acquire();
  this->desk.Acquire();
  EXPECT_EQ(this->desk.Ask("/v1/check", Body())["allowed"], false);
  EXPECT_EQ(this->desk.last.status, 429);
  EXPECT_EQ(this->desk.Ask("/v1/peek", Body())["decisions"][0]["remaining"], 0);
}

TYPED_TEST(Permits, AReservationIsSettledHoweverManyAreInFlight) {
  const json reserved = this->desk.Ask("/v1/reserve", Body({{"cost", 1}}, "both"));
  ASSERT_TRUE(reserved.contains("reservation")) << reserved;
  this->desk.Acquire(json::object(), "api_key");
  const json settled =
      this->desk.Ask("/v1/settle", {{"reservation", reserved["reservation"]}, {"cost", 0}});
  EXPECT_EQ(this->desk.last.status, 200);
  EXPECT_EQ(settled["returned"], json::array({1})) << settled;
}

// A client gives back only what it is told to hold.
TYPED_TEST(Permits, EndIfAnotherRuleIsFullOrTheirRuleIsInShadow) {
  constexpr std::string_view kText =
      "domain: edge\n"
      "descriptors:\n"
      "- {key: full, quota_mode: true, rate_limit: {algorithm: concurrency, requests: 1, ttl: "
      "9s}}\n"
      "- {key: free, quota_mode: true, rate_limit: {algorithm: concurrency, requests: 2, ttl: "
      "20s}}\n"
      "- {key: shade, shadow_mode: true, rate_limit: {algorithm: concurrency, requests: 1, ttl: "
      "10s}}\n";
  const rule::read::RuleFile file{.name = "f.yaml", .text = std::string(kText)};
  const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
  ASSERT_TRUE(loaded.ok());
  TypeParam server(loaded.rules);
  const auto entries = [](const char* key) -> json {
    return {{"entries", {{{"key", key}, {"value", "ann"}}}}};
  };
  const json both = {{"descriptors", {entries("full"), entries("free")}}};
  EXPECT_EQ(server.Acquire(both)["expires_in_ms"], 9000) << "the first that ends";
  const json one = server.Acquire(both);
  EXPECT_EQ(one["decisions"][0]["allowed"], false);
  EXPECT_EQ(one["expires_in_ms"], 20'000);

  const json shade = server.Acquire(json::object(), "shade");
  EXPECT_EQ(shade["expires_in_ms"], 10'000);
  EXPECT_EQ(shade["in_flight"], 1);
  const json second = server.Acquire(json::object(), "shade");
  EXPECT_EQ(second["allowed"], true);
  EXPECT_EQ(second["expires_in_ms"], nullptr) << "none is left to hold";
  EXPECT_TRUE(server.Release(shade["id"], "shade"));
}

TYPED_TEST(Permits, RefuseWhatDoesNotBelongToThem) {
  const auto detail = [&](const std::string& path, const json& more) {
    const json answer = this->desk.Ask(path, Body(more));
    EXPECT_EQ(this->desk.last.status, 400) << answer;
    return answer.value("detail", "");
  };
  EXPECT_EQ(detail("/v1/release", json::object()), "id is missing");
  EXPECT_EQ(detail("/v1/release", {{"id", "a"}, {"ttl_ms", 5000}}),
            "only /v1/acquire takes ttl_ms");
  EXPECT_EQ(detail("/v1/acquire", {{"expires_ms", 5000}}), "only /v1/reserve takes expires_ms");
  EXPECT_THAT(detail("/v1/acquire", {{"ttl_ms", 999}}), HasSubstr("ttl_ms must be a whole number"));
  EXPECT_THAT(detail("/v1/acquire", {{"ttl_ms", 86'400'001}}), HasSubstr("from 1000 to 86400000"));
  EXPECT_THAT(detail("/v1/acquire", {{"id", std::string(129, 'x')}}), HasSubstr("longer than 128"));
  EXPECT_EQ(detail("/v1/check", {{"ttl_ms", 5000}}), "only /v1/acquire takes ttl_ms");
  EXPECT_EQ(detail("/v1/reserve", {{"ttl_ms", 5000}}), "only /v1/acquire takes ttl_ms");
}

TEST(PermitsOverAStore, AStoreThatIsAwayIsSaid) {
  SharedDesk desk;
  desk.shared.failure = absl::UnavailableError("away");
  EXPECT_EQ(desk.Acquire({{"id", "a"}})["allowed"], true);
  EXPECT_EQ(desk.Field("X-RateLimit-Mode"), "local");
  EXPECT_TRUE(desk.Release("a"));
  desk.Ask("/v1/release", Body({{"id", "b"}}));
  EXPECT_EQ(desk.last.status, 503);
}

TEST(PermitsOverAStore, ARequestThatPassesBecauseTheStoreIsAwayHasNoPermitThatEnds) {
  SharedDesk desk;
  desk.shared.failure = absl::UnavailableError("away");
  const json answer = desk.Acquire(json::object(), "open");
  EXPECT_EQ(answer["allowed"], true);
  EXPECT_EQ(desk.Field("X-RateLimit-Mode"), "open");
  EXPECT_TRUE(answer.contains("expires_in_ms"));
  EXPECT_EQ(answer["expires_in_ms"], nullptr);
}

TEST(PermitsOverAStore, APermitThatMayHaveBeenGrantedIsGivenBackUnlessItsIdIsTheCallers) {
  for (const bool is_given : {false, true}) {
    SharedDesk desk;
    const std::string path = "/v1/acquire";
    const std::string body = Body(is_given ? json{{"id", "a"}} : json::object()).dump();
    http::Request request = RequestOf(path, body);
    request.suspension = &desk.rig.suspension;
    http::Response response;
    desk.rig.router.Handle(request, response, desk.now);
    ASSERT_TRUE(response.later);
    desk.shared.failure = absl::DeadlineExceededError("slow");
    desk.shared.AnswerOne();
    EXPECT_EQ(desk.shared.waiting(), is_given ? 0u : 1u) << "a release";
  }
}

TEST(PermitsOverAStore, AConnectionThatClosesMeanwhileGivesBackWhatItWouldHaveGot) {
  SharedDesk desk;
  {
    http::Suspension suspension;
    suspension.wake = [] {};
    const std::string path = "/v1/acquire";
    const std::string body = Body().dump();
    http::Request request = RequestOf(path, body);
    request.suspension = &suspension;
    http::Response response;
    desk.rig.router.Handle(request, response, desk.now);
    ASSERT_TRUE(response.later);
    EXPECT_EQ(response.held_until, desk.now) << "the connection ends with its client";
  }
  desk.shared.AnswerAll();
  EXPECT_EQ(desk.shared.PermitsIn("hg:{p|edge|api_key=ann}"), 0u);
}

}  // namespace permit_handler_test
}  // namespace headgate::front::api
