#include "headgate/front/api/reserve_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headgate/front/api/test_reserve_desk.h"

namespace headgate::front::api {
namespace reserve_handler_test {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

template <typename D>
struct Reservations : ::testing::Test {
  D desk;
};
using Desks = ::testing::Types<MemoryDesk, SharedDesk>;
TYPED_TEST_SUITE(Reservations, Desks);

TYPED_TEST(Reservations, WhatWasEstimatedTooMuchComesBack) {
  const std::string reservation = this->desk.Reserve(500);
  EXPECT_EQ(this->desk.Remaining(), 500u);
  const json settled = this->desk.Settle(reservation, 320);
  EXPECT_EQ(this->desk.status, 200);
  EXPECT_EQ(settled["returned"], json({180}));
  EXPECT_EQ(settled["uncovered"], json({0}));
  EXPECT_EQ(settled["decisions"][0]["remaining"], 680);
  EXPECT_EQ(this->desk.Remaining(), 680u);
}

TYPED_TEST(Reservations, WhatWasEstimatedTooLittleIsChargedAlsoIfItDoesNotFit) {
  const std::string little = this->desk.Reserve(100);
  EXPECT_EQ(this->desk.Settle(little, 300)["uncovered"], json({0}));
  EXPECT_EQ(this->desk.Remaining(), 700u);
  const std::string much = this->desk.Reserve(100);
  EXPECT_EQ(this->desk.Settle(much, 1000)["uncovered"], json({0}));
  EXPECT_EQ(this->desk.Remaining(), 0u);
}

// 100 are reserved and 400 used: the bucket owes 200, and lets a request pass when these and its
// cost have come back.
TEST(ReservationsOfABucket, LeaveItOverdrawn) {
  MemoryDesk desk(CheckRig::OneRule({.requests = 200, .period = 200s}));
  const std::string reservation = desk.Reserve(100);
  EXPECT_EQ(desk.Settle(reservation, 400)["uncovered"], json({0}));
  const json denied = desk.Ask("/v1/check", Body(1));
  EXPECT_EQ(denied["allowed"], false);
  EXPECT_EQ(denied["decisions"][0]["retry_after_ms"], 201'000);
}

TYPED_TEST(Reservations, WhatHasComeBackByItselfIsNotGivenBack) {
  const std::string reservation = this->desk.Reserve(500, {{"expires_ms", 3'600'000}});
  this->desk.now = kStart + 50min;  // in the next window
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(1000))["allowed"], true);
  EXPECT_EQ(this->desk.Settle(reservation, 0)["returned"], json({0}));
  EXPECT_EQ(this->desk.Remaining(), 0u);
}

TYPED_TEST(Reservations, SettleOnce) {
  const std::string reservation = this->desk.Reserve(500);
  this->desk.Settle(reservation, 0);
  EXPECT_EQ(this->desk.Remaining(), 1000u);
  this->desk.Settle(reservation, 0);
  EXPECT_EQ(this->desk.status, 409);
  this->desk.Reserve(100);
  this->desk.Settle(reservation, 0);
  EXPECT_EQ(this->desk.Remaining(), 900u) << "the other reservation is not touched";
}

TYPED_TEST(Reservations, StayTakenAfterTheirExpiry) {
  const std::string reservation = this->desk.Reserve(500, {{"expires_ms", 5000}});
  this->desk.now = kStart + 5s;
  const json answer = this->desk.Settle(reservation, 0);
  EXPECT_EQ(this->desk.status, 410);
  EXPECT_THAT(answer["detail"], HasSubstr("stays taken"));
  EXPECT_EQ(this->desk.Remaining(), 500u);
  const std::string other = this->desk.Reserve(100, {{"expires_ms", 5000}});
  this->desk.now = kStart + 10s - 1ns;
  this->desk.Settle(other, 0);
  EXPECT_EQ(this->desk.status, 200);
}

TYPED_TEST(Reservations, AreNotGivenToARequestThatIsDenied) {
  const json answer = this->desk.Ask("/v1/reserve", Body(1001));
  EXPECT_EQ(this->desk.status, 429);
  EXPECT_FALSE(answer.contains("reservation"));
  EXPECT_EQ(this->desk.Remaining(), 1000u);
}

TYPED_TEST(Reservations, ARetriedReservationWithAnIdIsTheSame) {
  const std::string first = this->desk.Reserve(500, {{"id", "call-7"}});
  const std::string again = this->desk.Reserve(500, {{"id", "call-7"}});
  EXPECT_EQ(this->desk.Remaining(), 500u);
  this->desk.Settle(first, 100);
  EXPECT_EQ(this->desk.status, 200);
  this->desk.Settle(again, 100);
  EXPECT_EQ(this->desk.status, 409);
  EXPECT_EQ(this->desk.Remaining(), 900u);
}

// Settling a reservation that took nothing would refill the bucket.
TYPED_TEST(Reservations, AnIdDoesNotStandForAnotherRequest) {
  json other = Body(1, {{"id", "call-7"}});
  other["descriptors"][0]["entries"][0]["value"] = "bob";
  this->desk.Ask("/v1/check", Body(995));
  this->desk.Ask("/v1/reserve", other);
  EXPECT_EQ(this->desk.status, 200);
  EXPECT_EQ(this->desk.Ask("/v1/reserve", Body(10, {{"id", "call-7"}})).count("reservation"), 0u);
  EXPECT_EQ(this->desk.status, 429) << "another descriptor";
  this->desk.Reserve(5, {{"id", "call-7"}});
  EXPECT_EQ(this->desk.Remaining(), 0u);
  this->desk.Ask("/v1/reserve", Body(6, {{"id", "call-7"}}));
  EXPECT_EQ(this->desk.status, 429) << "another cost";
}

TYPED_TEST(Reservations, ARetriedReservationIsAsOldAsTheFirst) {
  const json more = {{"id", "call-7"}, {"expires_ms", 3'600'000}};
  this->desk.Reserve(500, more);
  this->desk.now = kStart + 50min;  // in the next window
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(1000))["allowed"], true);
  EXPECT_EQ(this->desk.Settle(this->desk.Reserve(500, more), 0)["returned"], json({0}));
  EXPECT_EQ(this->desk.Remaining(), 0u);
  const std::string late = this->desk.Reserve(500, more);
  this->desk.now = kStart + 1h;
  this->desk.Settle(late, 0);
  EXPECT_EQ(this->desk.status, 410);
}

TYPED_TEST(Reservations, ARetriedReservationStatesTheTimeThatIsLeft) {
  const auto reserve = [&](uint64_t expires_ms) {
    return this->desk.Ask("/v1/reserve", Body(500, {{"id", "call-7"}, {"expires_ms", expires_ms}}));
  };
  EXPECT_EQ(reserve(60'000)["expires_in_ms"], 60'000);
  this->desk.now = kStart + 20s;
  EXPECT_EQ(reserve(60'000)["expires_in_ms"], 40'000);
  EXPECT_EQ(reserve(30'000)["expires_in_ms"], 10'000) << "counted from the first one too";
  this->desk.now = kStart + 60s - 1us;
  const json last = reserve(60'000);
  EXPECT_EQ(last["expires_in_ms"], 0) << "less than a millisecond";
  EXPECT_EQ(this->desk.Remaining(), 500u);
  this->desk.Settle(last["reservation"], 0);
  EXPECT_EQ(this->desk.status, 200);
}

// A late retry must neither take again nor get a reservation that nobody can settle.
TYPED_TEST(Reservations, ARetryAfterTheExpiryIsAnError) {
  const json more = {{"id", "call-7"}, {"expires_ms", 60'000}};
  this->desk.Reserve(500, more);
  this->desk.now = kStart + 60s;
  const json late = this->desk.Ask("/v1/reserve", Body(500, more));
  EXPECT_EQ(this->desk.status, 410);
  EXPECT_FALSE(late.contains("reservation"));
  EXPECT_EQ(late["detail"],
            "the reservation with this id has expired; it stays taken as estimated");
  EXPECT_EQ(late["hint"], "reserve with another id");
  EXPECT_EQ(this->desk.Remaining(), 500u);
}

// The id and its settlement are remembered long enough for each other.
TYPED_TEST(Reservations, AnIdIsFreeAgainAfterTwoHours) {
  const json more = {{"id", "call-7"}, {"expires_ms", 3'600'000}};
  const std::string first = this->desk.Reserve(500, more);
  this->desk.now = kStart + 1h - 1s;
  this->desk.Settle(first, 0);
  EXPECT_EQ(this->desk.status, 200);
  this->desk.now = kStart + 2h - 1s;
  this->desk.Ask("/v1/reserve", Body(500, more));
  EXPECT_EQ(this->desk.status, 410);
  this->desk.now = kStart + 2h;
  const std::string second = this->desk.Reserve(500, more);
  EXPECT_NE(second, first);
  EXPECT_EQ(this->desk.Settle(second, 100)["returned"], json({400}));
  EXPECT_EQ(this->desk.status, 200);
}

TYPED_TEST(Reservations, EachDescriptorHasItsOwnCost) {
  json body = Body(0);
  body["descriptors"].push_back(body["descriptors"][0]);
  body["descriptors"][0]["cost"] = 100;
  body["descriptors"][1] = {{"entries", {{{"key", "api_key"}, {"value", "bob"}}}}, {"cost", 200}};
  const std::string reservation = this->desk.Ask("/v1/reserve", body)["reservation"];
  const auto settle = [&](const json& costs) {
    return this->desk.Ask("/v1/settle", {{"reservation", reservation}, {"costs", costs}});
  };
  for (const json& costs : {json({1}), json({1, 2, 3})}) {
    EXPECT_EQ(settle(costs)["detail"], "the reservation has 2 descriptors") << costs;
    EXPECT_EQ(this->desk.status, 400);
  }
  const json settled = settle({150, 10});
  EXPECT_EQ(settled["decisions"][0]["remaining"], 850);
  EXPECT_EQ(settled["decisions"][1]["remaining"], 990);
}

TYPED_TEST(Reservations, RefuseWhatIsNone) {
  const std::string reservation = this->desk.Reserve(1);
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("{}"), std::string(R"({"cost":1})"),
        R"({"reservation":")" + reservation + R"("})",
        R"({"reservation":")" + reservation + R"(","cost":-1})",
        R"({"reservation":")" + reservation + R"(","cost":1.5})",
        R"({"reservation":")" + reservation + R"(","costs":[]})",
        R"({"reservation":")" + reservation + R"(","cost":1,"costs":[1]})",
        R"({"reservation":")" + reservation + R"(","cost":1,"more":1})",
        std::string(R"({"reservation":"abcd","cost":1})")}) {
    EXPECT_EQ(this->desk.Post("/v1/settle", body).status, 400) << body;
  }
  EXPECT_EQ(this->desk.Remaining(), 999u);
  for (const uint64_t expires : {uint64_t{999}, uint64_t{3'600'001}}) {
    this->desk.Ask("/v1/reserve", Body(1, {{"expires_ms", expires}}));
    EXPECT_EQ(this->desk.status, 400);
  }
}

TYPED_TEST(Reservations, ACheckWithAnIdCountsOnce) {
  const json more = {{"id", "call-7"}};
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(600, more))["allowed"], true);
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(600, more))["allowed"], true);
  EXPECT_EQ(this->desk.Remaining(), 400u);
  const json checks = {
      {"checks", {Body(600, more), Body(100, {{"id", "call-8"}}), Body(100, {{"id", "call-8"}})}}};
  const json answer = this->desk.Ask("/v1/checks", checks);
  for (const json& result : answer["results"]) EXPECT_EQ(result["status"], 200);
  EXPECT_EQ(this->desk.Remaining(), 300u);
  this->desk.Reserve(100, more);
  EXPECT_EQ(this->desk.Remaining(), 200u) << "a reservation is another request";
}

TYPED_TEST(Reservations, ACheckWithTheIdOfAnotherRequestIsDecidedAnew) {
  const json more = {{"id", "call-7"}};
  this->desk.Ask("/v1/check", Body(600, more));
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(300, more))["allowed"], true);
  EXPECT_EQ(this->desk.Remaining(), 100u);
  EXPECT_EQ(this->desk.Ask("/v1/check", Body(200, more))["allowed"], false);
}

// A client that knows how settlements are remembered could pass for free, or settle for others.
TYPED_TEST(Reservations, AreNotMistakenForChecksWithSimilarIds) {
  const std::string first = this->desk.Reserve(500, {{"id", "a"}});
  this->desk.Settle(first, 100);
  for (const char* const id : {"settle|a", "reserve|a", "check|a"}) {
    const uint64_t before = this->desk.Remaining();
    EXPECT_EQ(this->desk.Ask("/v1/check", Body(100, {{"id", id}}))["allowed"], true);
    EXPECT_EQ(this->desk.Remaining(), before - 100) << id;
  }
  const std::string second = this->desk.Reserve(200, {{"id", "b"}});
  for (const char* const id : {"settle|b", "b"})
    this->desk.Ask("/v1/check", Body(200, {{"id", id}}));
  this->desk.Settle(second, 200);
  EXPECT_EQ(this->desk.status, 200);
}

TYPED_TEST(Reservations, FieldsOfOtherPathsAreRefused) {
  for (const char* const path : {"/v1/peek", "/v1/reset"}) {
    EXPECT_THAT(this->desk.Ask(path, Body(1, {{"id", "x"}}))["detail"], HasSubstr("have an id"));
    EXPECT_EQ(this->desk.status, 400);
  }
  EXPECT_THAT(this->desk.Ask("/v1/check", Body(1, {{"expires_ms", 2000}}))["detail"],
              HasSubstr("only /v1/reserve"));
  this->desk.Ask("/v1/check", Body(1, {{"id", ""}}));
  EXPECT_EQ(this->desk.status, 400);
  this->desk.Ask("/v1/check", Body(1, {{"id", std::string(128, 'x')}}));
  EXPECT_EQ(this->desk.status, 200);
  this->desk.Ask("/v1/check", Body(1, {{"id", std::string(129, 'x')}}));
  EXPECT_EQ(this->desk.status, 400);
}

TYPED_TEST(Reservations, AHintNamesOnlyTheFieldsThatThePathTakes) {
  const std::string question = "its fields are domain, descriptors, cost";
  const json wrong = Body(1, {{"expires", 1}});
  EXPECT_EQ(this->desk.Ask("/v1/peek", wrong)["hint"], question);
  EXPECT_EQ(this->desk.Ask("/v1/refund", wrong)["hint"], question + ", id");
  EXPECT_EQ(this->desk.Ask("/v1/check", wrong)["hint"], question + ", id");
  EXPECT_EQ(this->desk.Ask("/v1/checks", {{"checks", {wrong}}})["hint"], question + ", id");
  EXPECT_EQ(this->desk.Ask("/v1/reserve", wrong)["hint"], question + ", id, expires_ms");
}

// Otherwise a reservation could be settled twice, and its refund would be for nothing.
TEST(ReservationsInAnOutage, AreNotSettledUnlessTheStoreRemembersIt) {
  SharedDesk desk;
  const std::string reservation = desk.Reserve(500);
  desk.shared.failure = absl::DeadlineExceededError("no answer");
  const json answer = desk.Settle(reservation, 0);
  EXPECT_EQ(desk.status, 503);
  EXPECT_EQ(answer["detail"], "the reservation is not settled: the shared store cannot be reached");
  EXPECT_THAT(answer["hint"], HasSubstr("settle it again"));
  desk.shared.failure = absl::OkStatus();
  EXPECT_EQ(desk.Remaining(), 500u);
  EXPECT_EQ(desk.Settle(reservation, 0)["returned"], json({500}));
  EXPECT_EQ(desk.status, 200);
}

// The store goes away when the reservation has been used up.
TEST(ReservationsInAnOutage, ShowWhatCameOfASettlement) {
  for (const uint64_t used : {uint64_t{100}, uint64_t{700}}) {
    SharedDesk desk;
    const std::string reservation = desk.Reserve(500);
    desk.rig.before_answer = [&, answered = 0]() mutable {
      const int first_step = 3;  // a peek at the id, the bucket, and the id
      if (answered++ == first_step) desk.shared.failure = absl::UnavailableError("gone");
    };
    const json answer = desk.Settle(reservation, used);
    EXPECT_EQ(desk.status, 200) << answer;
    EXPECT_EQ(answer["returned"], json({0}));
    EXPECT_EQ(answer["uncovered"], json({0})) << "more is taken from the share of this instance";
    desk.rig.before_answer = [] {};
    desk.shared.failure = absl::OkStatus();
    EXPECT_EQ(desk.Remaining(), 500u);
    desk.Settle(reservation, used);
    EXPECT_EQ(desk.status, 409);
  }
}

}  // namespace reserve_handler_test
}  // namespace headgate::front::api
