// Reservations whose rules change before they are settled. Nothing comes back that may have come
// back by itself under another limit.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "headgate/front/api/test_ruled_desk.h"

namespace headgate::front::api {
namespace reserved_changes_test {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kTokens = "algorithm: token_bucket";
constexpr const char* kWindow = "algorithm: fixed_window";
constexpr const char* kCounter = "algorithm: sliding_window_counter";
constexpr const char* kFirstHit = "algorithm: fixed_window, align: first_hit";
constexpr const char* kLog = "algorithm: sliding_window_log";
constexpr const char* kMeter = "algorithm: leaky_bucket";
constexpr const char* kQueue = "algorithm: leaky_bucket, queue: true, max_delay: 1h, burst: 100";

// 100 an hour.
std::string Hourly(const std::string& algorithm) {
  return RuleOf("user", "unit: hour, requests_per_unit: 100, " + algorithm);
}

template <typename D>
struct ChangedReservations : ::testing::Test {
  // The part of 50 that comes back if the rule is `from` when they are reserved and `to` when they
  // are settled.
  json Back(const std::string& from, const std::string& to) {
    RuledDesk<D> desk(from);
    const std::string reservation = desk.Reserve(50, Of({"user"}));
    desk.Now(to);
    return desk.Returned(reservation);
  }
};
using Desks = ::testing::Types<MemoryDesk, SharedDesk>;
TYPED_TEST_SUITE(ChangedReservations, Desks);

TYPED_TEST(ChangedReservations, GiveNothingBackToAnotherAlgorithm) {
  for (const std::string from : {kTokens, kWindow, kCounter, kFirstHit, kLog, kQueue}) {
    for (const std::string to : {kTokens, kWindow, kCounter}) {
      EXPECT_EQ(this->Back(Hourly(from), Hourly(to)), json({from == to ? 50 : 0}))
          << from << " to " << to;
    }
  }
  EXPECT_EQ(this->Back(Hourly(kMeter), Hourly(kTokens)), json({50})) << "the same arithmetic";
}

TYPED_TEST(ChangedReservations, GiveNothingBackToABucketWithAnotherRateOrBurst) {
  const auto bucket = [](int requests, int burst) {
    return RuleOf("user", "unit: hour, requests_per_unit: " + std::to_string(requests) +
                              ", burst: " + std::to_string(burst));
  };
  EXPECT_EQ(this->Back(bucket(100, 100), bucket(100, 100)), json({50}));
  EXPECT_EQ(this->Back(bucket(100, 100), Hourly(kTokens)), json({50})) << "the usual burst";
  EXPECT_EQ(this->Back(bucket(100, 100), bucket(10, 100)), json({0}));
  EXPECT_EQ(this->Back(bucket(100, 100), bucket(200, 100)), json({0}));
  EXPECT_EQ(this->Back(bucket(100, 100), bucket(100, 60)), json({0}));
}

TYPED_TEST(ChangedReservations, GiveBackToAWindowWithAnotherNumberOfRequests) {
  for (const std::string algorithm : {kWindow, kCounter}) {
    const std::string more = RuleOf("user", "unit: hour, requests_per_unit: 200, " + algorithm);
    EXPECT_EQ(this->Back(Hourly(algorithm), more), json({50})) << algorithm;
  }
  const auto month = [](const std::string& align) {
    return RuleOf("user", "unit: day, requests_per_unit: 100, algorithm: fixed_window" + align);
  };
  EXPECT_EQ(this->Back(month(""), month("")), json({50}));
  EXPECT_EQ(this->Back(month(", align: first_hit"), month("")), json({0}));
}

// In between, what was reserved may have come back and been taken by others.
TYPED_TEST(ChangedReservations, GiveNothingBackToALimitThatWasAnotherOneMeanwhile) {
  RuledDesk<TypeParam> desk(Hourly(kTokens));
  const std::string reservation = desk.Reserve(50, Of({"user"}));
  desk.Now(RuleOf("user", "unit: second, requests_per_unit: 100"));
  desk.now += 1s;
  EXPECT_TRUE(desk.Takes(100, "user"));
  desk.Now(Hourly(kTokens));
  EXPECT_EQ(desk.Returned(reservation), json({0}));
  EXPECT_EQ(desk.Left("user"), 0u);
}

TYPED_TEST(ChangedReservations, DoNotMindChangesBeforeThem) {
  RuledDesk<TypeParam> desk(Hourly(kTokens));
  desk.Now(Hourly(kWindow));
  desk.Now(Hourly(kTokens));
  desk.now += 1ns;
  EXPECT_EQ(desk.Returned(desk.Reserve(50, Of({"user"}))), json({50}));
}

// The limits of a roll-out hold for its keys, not those of the rule.
TYPED_TEST(ChangedReservations, FollowTheRollOutOfTheirKey) {
  const std::string rule = "- key: user\n  rate_limit: {unit: hour, requests_per_unit: 100}\n";
  const auto rolled_out = [&](const std::string& percent) {
    return rule + "  rollout: {percent: " + percent +
           ", rate_limit: {unit: hour, requests_per_unit: 3600, burst: 100}}\n";
  };
  RuledDesk<TypeParam> desk(rolled_out("100"));
  const std::string first = desk.Reserve(50, Of({"user"}));
  desk.now += 30s;  // 30 have come back
  EXPECT_EQ(desk.Returned(first), json({20}));
  const std::string second = desk.Reserve(50, Of({"user"}));
  desk.Now(rule);
  EXPECT_EQ(desk.Returned(second), json({0}));
}

// Taken in one window, and settled when the next one has come.
TYPED_TEST(ChangedReservations, LetNoMoreThroughThanOneBucket) {
  RuledDesk<TypeParam> desk(Hourly(kWindow));
  const std::string reservation =
      desk.Reserve(100, {{"descriptors", Of({"user"})["descriptors"]}, {"expires_ms", 3'600'000}});
  desk.now += 50min;
  ASSERT_TRUE(desk.Takes(100, "user"));
  desk.Now(Hourly(kTokens));
  EXPECT_EQ(desk.Returned(reservation), json({0}));
  EXPECT_FALSE(desk.Takes(1, "user"));
}

}  // namespace reserved_changes_test
}  // namespace headgate::front::api
