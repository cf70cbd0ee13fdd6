#include "headgate/front/api/reserved_buckets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headgate/front/api/test_reserve_desk.h"
#include "headgate/rule/read/load.h"

namespace headgate::front::api {
namespace reserved_buckets_test {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::string_view kHour = "{unit: hour, requests_per_unit: 100, algorithm: fixed_window}";

std::shared_ptr<const rule::RuleSet> RulesOf(const std::string& descriptors) {
  const rule::read::RuleFile file{.name = "f.yaml",
                                  .text = "domain: edge\ndescriptors:\n" + descriptors};
  const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
  HEADGATE_CHECK(loaded.ok());
  return loaded.rules;
}

// One of 100 an hour.
std::string Key(std::string_view key, std::string_view more = "") {
  return fmt::format("- key: {}\n{}  rate_limit: {}\n", key, more, kHour);
}

std::string Usual() {
  return Key("user") + Key("quota_1", "  quota_mode: true\n") +
         Key("quota_2", "  quota_mode: true\n") + Key("shade", "  shadow_mode: true\n") +
         "- key: queue\n"
         "  rate_limit: {unit: minute, requests_per_unit: 600, algorithm: leaky_bucket, queue: "
         "true, "
         "burst: 100}\n"
         "- key: open\n"
         "  rate_limit: {unit: hour, requests_per_unit: 100, algorithm: fixed_window, "
         "on_store_failure: allow}\n";
}

json Of(std::initializer_list<std::string_view> keys) {
  json descriptors = json::array();
  for (const std::string_view key : keys)
    descriptors.push_back({{"entries", {{{"key", key}, {"value", "ann"}}}}});
  return {{"descriptors", descriptors}};
}

template <typename D>
struct ReservedBuckets : ::testing::Test {
  uint64_t Left(std::string_view key) { return desk.Remaining(Of({key})); }
  bool Takes(uint64_t cost, std::string_view key) {
    return desk.Ask("/v1/check", Body(cost, Of({key})))["allowed"];
  }
  // The units that come back if nothing was used.
  json Returned(const std::string& reservation) {
    const json answer = desk.Settle(reservation, 0);
    EXPECT_EQ(desk.status, 200) << answer;
    return answer.value("returned", json());
  }
  void Now(const std::string& rules) {
    EXPECT_TRUE(desk.limiter.OnRules(RulesOf(rules), desk.now).ok());
  }
  D desk{RulesOf(Usual())};
};
using Desks = ::testing::Types<MemoryDesk, SharedDesk>;
TYPED_TEST_SUITE(ReservedBuckets, Desks);

TYPED_TEST(ReservedBuckets, ARuleInQuotaModeThatDeniedGetsNothingBack) {
  ASSERT_TRUE(this->Takes(100, "quota_1"));
  const std::string reservation = this->desk.Reserve(50, Of({"quota_1", "quota_2"}));
  EXPECT_EQ(this->Left("quota_2"), 50u);
  EXPECT_EQ(this->Returned(reservation), json({0, 50}));
  EXPECT_EQ(this->Left("quota_1"), 0u);
  EXPECT_EQ(this->Left("quota_2"), 100u);
}

// With an id, a request takes from all or from none, but it passes if one of its quotas denies.
TYPED_TEST(ReservedBuckets, OfARequestWithAnIdGetBackWhatTheyLack) {
  ASSERT_TRUE(this->Takes(100, "quota_1"));
  ASSERT_TRUE(this->Takes(100, "shade"));
  ASSERT_TRUE(this->Takes(30, "quota_2"));
  json more = Of({"quota_1", "quota_2", "shade", "user"});
  more["id"] = "call-7";
  const std::string reservation = this->desk.Reserve(50, more);
  EXPECT_EQ(this->Left("quota_2"), 20u);
  EXPECT_EQ(this->Returned(reservation), json({0, 50, 0, 50}));
  EXPECT_EQ(this->Left("quota_2"), 70u);
  EXPECT_EQ(this->Left("shade"), 0u);
}

TYPED_TEST(ReservedBuckets, ARuleInShadowGetsBackWhatItTook) {
  EXPECT_EQ(this->Returned(this->desk.Reserve(60, Of({"shade"}))), json({60}));
  EXPECT_EQ(this->Left("shade"), 100u);
  ASSERT_TRUE(this->Takes(100, "shade"));
  EXPECT_EQ(this->Returned(this->desk.Reserve(50, Of({"shade"}))), json({0}));
  EXPECT_EQ(this->Left("shade"), 0u);
}

TYPED_TEST(ReservedBuckets, GetBackNoMoreThanTheyLack) {
  const auto change = [&](const std::string& path, uint64_t cost) {
    this->desk.Ask(path, Body(cost, Of({"user"})));
    ASSERT_EQ(this->desk.status, 200);
  };
  const std::string before_reset = this->desk.Reserve(60, Of({"user"}));
  change("/v1/reset", 0);
  EXPECT_EQ(this->Returned(before_reset), json({0}));
  const std::string before_refund = this->desk.Reserve(60, Of({"user"}));
  change("/v1/refund", 40);
  EXPECT_EQ(this->Returned(before_refund), json({20}));
  EXPECT_EQ(this->Left("user"), 100u);
}

// Then it lacks more than it can hold.
TYPED_TEST(ReservedBuckets, GetAllBackIfTheLimitIsLowerNow) {
  const std::string first = this->desk.Reserve(30, Of({"user"}));
  const std::string second = this->desk.Reserve(60, Of({"user"}));
  this->Now(
      "- key: user\n  rate_limit: {unit: hour, requests_per_unit: 50, algorithm: "
      "fixed_window}\n");
  EXPECT_EQ(this->Returned(second), json({60}));
  EXPECT_EQ(this->Left("user"), 20u);
  EXPECT_EQ(this->Returned(first), json({30}));
  EXPECT_EQ(this->Left("user"), 50u);
}

TYPED_TEST(ReservedBuckets, ARuleThatCameLaterGetsNothingBack) {
  const std::string before = this->desk.Reserve(100, Of({"late"}));
  this->Now(Usual() + Key("late"));
  ASSERT_TRUE(this->Takes(100, "late"));
  EXPECT_EQ(this->Returned(before), json({0}));
  EXPECT_EQ(this->Left("late"), 0u);
}

// Otherwise the settlement of the retry would give back requests that the first attempt did not
// take.
TYPED_TEST(ReservedBuckets, ARetryUnderOtherRulesTakesFromTheirBuckets) {
  json more = Of({"late"});
  more["id"] = "call-7";
  this->desk.Reserve(30, more);
  this->Now(Usual() + Key("late"));
  const std::string again = this->desk.Reserve(30, more);
  EXPECT_EQ(this->Left("late"), 70u);
  this->desk.Reserve(30, more);
  EXPECT_EQ(this->Left("late"), 70u) << "the same reservation again";
  EXPECT_EQ(this->Returned(again), json({30}));
}

TYPED_TEST(ReservedBuckets, AreTheSameWhileOnlyTheNumberOfRequestsChanges) {
  const std::string first = this->desk.Reserve(80, Of({"user"}));
  const std::string second = this->desk.Reserve(20, Of({"user"}));
  this->Now(
      "- key: user\n  rate_limit: {unit: hour, requests_per_unit: 200, algorithm: "
      "fixed_window}\n");
  EXPECT_EQ(this->Returned(first), json({80}));
  this->Now("- key: user\n  rate_limits:\n  - " + std::string(kHour) +
            "\n  - {unit: day, requests_per_unit: 500, algorithm: fixed_window}\n");
  EXPECT_EQ(this->Returned(second), json({0}));
}

TYPED_TEST(ReservedBuckets, OfAQueueTakeNothingBackAndTheOthersDo) {
  const std::string reservation = this->desk.Reserve(50, Of({"user", "queue"}));
  EXPECT_EQ(this->Returned(reservation), json({50, 0}));
  EXPECT_EQ(this->Left("user"), 100u);
  const std::string before = this->desk.Reserve(50, Of({"user"}));
  this->Now(
      "- key: user\n  rate_limit: {unit: hour, requests_per_unit: 100, algorithm: "
      "leaky_bucket, queue: true, max_delay: 1h, burst: 100}\n");
  EXPECT_EQ(this->Returned(before), json({0}));
}

// The instance that settles has not seen what another one has taken.
TEST(ReservedBucketsOfALease, GetBackAllThatWasTaken) {
  const auto limit = algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                                             .requests = 100,
                                             .period = std::chrono::hours(1)});
  limiter::DescriptorAnswer answer{.decision = {.allowed = true, .limit = 100, .remaining = 90},
                                   .limit = &*limit,
                                   .mode = limiter::Mode::kLeased};
  const auto still = [&] {
    return StillTaken({.cost = 60, .mark = 5}, {.mark = 5}, answer, kStart, kStart);
  };
  EXPECT_EQ(still(), 60u);
  answer.mode = limiter::Mode::kExact;
  EXPECT_EQ(still(), 10u);
}

TEST(ReservedBucketsInAnOutage, GetNothingBackThatTheStoreHasNotGiven) {
  SharedDesk desk(RulesOf(Usual()));
  ASSERT_EQ(desk.Ask("/v1/check", Body(100, Of({"open"})))["allowed"], true);
  desk.shared.failure = absl::UnavailableError("gone");
  const std::string open = desk.Reserve(50, Of({"open"}));
  const std::string of_its_share = desk.Reserve(50, Of({"user"}));
  desk.shared.failure = absl::OkStatus();
  EXPECT_EQ(desk.Settle(open, 0)["returned"], json({0}));
  EXPECT_EQ(desk.Remaining(Of({"open"})), 0u);
  EXPECT_EQ(desk.Settle(of_its_share, 0)["returned"], json({0}));
}

TEST(ReservedBucketsOfOneInstance, AreNotSettledAtAnother) {
  MemoryDesk ann(TokensPerHour(100), "secret", 1), bob(TokensPerHour(100), "secret", 2);
  SharedDesk cy(TokensPerHour(100), "secret");
  const std::string reservation = ann.Reserve(100);
  for (Desk* const other : {static_cast<Desk*>(&bob), static_cast<Desk*>(&cy)}) {
    other->Ask("/v1/check", Body(100));
    const json answer = other->Settle(reservation, 0);
    EXPECT_EQ(other->status, 400);
    EXPECT_THAT(answer["detail"], HasSubstr("by an instance with other buckets"));
    EXPECT_THAT(answer["hint"], HasSubstr("share a store"));
    EXPECT_EQ(other->Remaining(), 0u);
  }
  EXPECT_EQ(ann.Settle(reservation, 0)["returned"], json({100}));
  ann.Settle(cy.Reserve(0), 0);
  EXPECT_EQ(ann.status, 400);
}

}  // namespace reserved_buckets_test
}  // namespace headgate::front::api
