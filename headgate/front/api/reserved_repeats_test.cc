// Reservations that are sent again with the same id, because an answer was lost.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headgate/front/api/test_ruled_desk.h"

namespace headgate::front::api {
namespace reserved_repeats_test {

using nlohmann::json;

std::string Usual() {
  return HourOf("user") + HourOf("quota_1", "  quota_mode: true\n") +
         HourOf("quota_2", "  quota_mode: true\n") + HourOf("shade", "  shadow_mode: true\n") +
         RuleOf("open",
                "unit: hour, requests_per_unit: 100, algorithm: fixed_window, on_store_failure: "
                "allow");
}

json Named(json more, const std::string& id = "call-7") {
  more["id"] = id;
  return more;
}

template <typename D>
struct RepeatedReservations : ::testing::Test {
  // Reserves 50 of each twice, and settles the second one.
  json ReturnedToARetry(const json& more) {
    desk.Reserve(50, more);
    return desk.Returned(desk.Reserve(50, more));
  }
  RuledDesk<D> desk{Usual()};
};
using Desks = ::testing::Types<MemoryDesk, SharedDesk>;
TYPED_TEST_SUITE(RepeatedReservations, Desks);

TYPED_TEST(RepeatedReservations, GiveBackWhatTheFirstOneTook) {
  EXPECT_EQ(this->ReturnedToARetry(Named(Of({"user", "quota_1", "shade", "none"}))),
            json({50, 50, 50, 0}));
  for (const char* const key : {"user", "quota_1", "shade"})
    EXPECT_EQ(this->desk.Left(key), 100u) << key;
}

// Otherwise whoever may reserve could refill a quota that is used up.
TYPED_TEST(RepeatedReservations, GiveNothingBackToAQuotaThatDenied) {
  ASSERT_TRUE(this->desk.Takes(100, "quota_1"));
  EXPECT_EQ(this->ReturnedToARetry(Named(Of({"quota_1", "quota_2"}))), json({0, 50}));
  EXPECT_EQ(this->desk.Left("quota_1"), 0u);
  EXPECT_EQ(this->desk.Left("quota_2"), 100u);
}

TYPED_TEST(RepeatedReservations, GiveNothingBackToARuleInShadowThatDenied) {
  ASSERT_TRUE(this->desk.Takes(80, "shade"));
  EXPECT_EQ(this->ReturnedToARetry(Named(Of({"shade", "user"}))), json({0, 50}));
  EXPECT_EQ(this->desk.Left("shade"), 20u);
}

// It matters how much the first one took, not how much a later one could take.
TYPED_TEST(RepeatedReservations, DoNotAskWhatTheBucketsHaveNow) {
  const json more = Named(Of({"quota_1", "quota_2"}));
  ASSERT_TRUE(this->desk.Takes(100, "quota_1"));
  this->desk.Reserve(50, more);
  this->desk.Ask("/v1/reset", Body(0, Of({"quota_1"})));
  ASSERT_TRUE(this->desk.Takes(50, "quota_1"));
  ASSERT_TRUE(this->desk.Takes(50, "quota_2"));
  EXPECT_EQ(this->desk.Returned(this->desk.Reserve(50, more)), json({0, 50}));
}

// An id remembers 16 takes; with more descriptors, two of them share what is remembered.
TYPED_TEST(RepeatedReservations, WithManyDescriptorsGiveBackNoMoreThanWasTaken) {
  json more = Of({});
  json all_back = json::array();
  for (int i = 0; i < 64; ++i) {
    more["descriptors"].push_back({{"entries", {{{"key", "user"}, {"value", std::to_string(i)}}}}});
    all_back.push_back(50);
  }
  EXPECT_EQ(this->ReturnedToARetry(Named(more, "one")), all_back);
  ASSERT_TRUE(this->desk.Takes(100, "shade"));
  more["descriptors"][3] = Of({"shade"})["descriptors"][0];
  json back = all_back;
  for (const size_t shared : {3u, 19u, 35u, 51u}) back[shared] = 0;
  EXPECT_EQ(this->ReturnedToARetry(Named(more, "two")), back);
  EXPECT_EQ(this->desk.Left("shade"), 0u);
}

// The store of one bucket cannot be reached, and that of the id can.
TEST(RepeatedReservationsInAnOutage, GiveNothingBackThatTheStoreHasNotGiven) {
  RuledDesk<SharedDesk> desk(Usual());
  const json more = Named(Of({"open", "user"}));
  desk.rig.before_answer = [&] {
    const bool gone = desk.shared.oldest().name.find("open") != std::string::npos;
    desk.shared.failure = gone ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  desk.Reserve(50, more);
  desk.rig.before_answer = [] {};
  desk.shared.failure = absl::OkStatus();
  ASSERT_TRUE(desk.Takes(100, "open"));
  EXPECT_EQ(desk.Returned(desk.Reserve(50, more)), json({0, 50}));
  EXPECT_EQ(desk.Left("open"), 0u);
}

// The id is used up, but what was taken is not known, as if the instance had ended meanwhile.
TEST(RepeatedReservationsInAnOutage, GiveNothingBackThatTheIdDoesNotRemember) {
  RuledDesk<SharedDesk> desk(Usual());
  desk.rig.before_answer = [&] {
    const bool notes = desk.shared.oldest().operation == store::Operation::kUndo;
    desk.shared.failure = notes ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  const std::string first = desk.Reserve(30, Named(Of({"user"}), "one"));
  desk.Reserve(50, Named(Of({"user"}), "two"));
  desk.rig.before_answer = [] {};
  desk.shared.failure = absl::OkStatus();
  EXPECT_EQ(desk.Returned(desk.Reserve(50, Named(Of({"user"}), "two"))), json({0}));
  EXPECT_EQ(desk.Left("user"), 20u);
  EXPECT_EQ(desk.Returned(first), json({30})) << "its own answer says what was taken";
}

// The request does not wait until the store has noted its id.
TEST(RepeatedReservationsInAnOutage, NobodyWaitsForTheNote) {
  RuledDesk<SharedDesk> desk(Usual());
  size_t answered = 0;
  desk.rig.before_answer = [&] { ++answered; };
  desk.Reserve(50, Of({"user"}));
  EXPECT_EQ(answered, 1u) << "without an id";
  const std::string path = "/v1/reserve";
  const std::string body = Body(50, Named(Of({"user"}))).dump();
  http::Request request = RequestOf(path, body);
  request.suspension = &desk.rig.suspension;
  http::Response response;
  for (response.later = true; response.later;) {
    while (desk.shared.waiting() > 0) desk.shared.AnswerOne();
    response = {};
    desk.rig.router.Handle(request, response, desk.now);
  }
  EXPECT_EQ(response.status, 200);
  ASSERT_EQ(desk.shared.waiting(), 1u);
  EXPECT_EQ(desk.shared.oldest().operation, store::Operation::kUndo);
  desk.shared.AnswerAll();
}

}  // namespace reserved_repeats_test
}  // namespace headgate::front::api
