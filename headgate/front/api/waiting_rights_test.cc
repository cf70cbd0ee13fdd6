// A request that waits for the shared store while its user loses the right: the request is
// answered, and the answers of the store serve no other request of the connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headgate/access/access_rig.h"
#include "headgate/front/api/check_rig.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::front::api {
namespace waiting_rights_test {

using namespace std::chrono_literals;
using nlohmann::json;

json Check(const std::string& value, uint64_t cost) {
  return {
      {"domain", "edge"},
      {"descriptors", {{{"entries", {{{"key", "api_key"}, {"value", value}}}}, {"cost", cost}}}}};
}

// A server whose store answers later, and one connection.
struct Connection {
  Connection() {
    HEADGATE_CHECK(limiter.OnRules(CheckRig::OneRule({.requests = 100, .period = 1h}), now).ok());
    handler.AddRoutes(router);
    suspension.wake = [] {};
  }

  http::Response Ask(const std::string& path, const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.target = path;
    request.fields = {{"Content-Type", "application/json"}};
    request.body = body;
    request.suspension = &suspension;
    http::Response response;
    router.Handle(request, response, now);
    return response;
  }
  // Asks until the answer comes; `meanwhile` happens before the first answer of the store.
  http::Response Exchange(
      const std::string& path, const json& body, const std::function<void()>& meanwhile = [] {}) {
    http::Response response = Ask(path, body.dump());
    EXPECT_TRUE(response.later) << response.body;
    meanwhile();
    while (response.later) {
      shared.AnswerAll();
      response = Ask(path, body.dump());
    }
    return response;
  }
  json Reserve(const std::string& value, uint64_t cost) {
    return json::parse(Exchange("/v1/reserve", Check(value, cost)).body)["reservation"];
  }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{{.max_buckets = 4096}};
  testing::ManualSharedStore shared{store, now};
  limiter::shared::SharedDecider decider{shared, store, {}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter, 0, decider, {}};
  CheckHandler handler{checker, {}, "secret"};
  access::Access access{{.users = access::Everybody(access::Rights::All())}};
  http::routing::Router router{"Headgate", access};
  http::Suspension suspension;
};

class SentRequest : public ::testing::TestWithParam<std::string> {
 protected:
  // A request to `path` that the connection has not received before.
  static json BodyFor(const std::string& path, Connection& connection, const std::string& value) {
    if (path == "/v1/checks") return {{"checks", {Check(value, 7), Check(value, 8)}}};
    if (path != "/v1/settle") return Check(value, 7);
    return {{"reservation", connection.Reserve(value, 20)}, {"cost", 5}};
  }
  // Two connections give different reservations.
  static json Comparable(const http::Response& response) {
    json body = json::parse(response.body);
    body.erase("reservation");
    return {{"status", response.status}, {"body", body}};
  }
};

TEST_P(SentRequest, IsAnsweredThoughTheRightIsLostAndItsAnswersServeNoOtherRequest) {
  const std::string& path = GetParam();
  Connection undisturbed;
  Connection connection;
  const json expected = Comparable(undisturbed.Exchange(path, BodyFor(path, undisturbed, "ann")));
  const json body = BodyFor(path, connection, "ann");
  const http::Response response =
      connection.Exchange(path, body, [&] { connection.access.Replace(access::Everybody({})); });
  EXPECT_EQ(Comparable(response), expected);

  EXPECT_EQ(connection.Ask(path, body.dump()).status, 401);
  EXPECT_EQ(connection.shared.waiting(), 0u) << "a request without the right is not sent";

  connection.access.Replace(access::Everybody(access::Rights::All()));
  for (const char* const next : {"/v1/check", "/v1/checks", "/v1/settle", "/v1/reserve"}) {
    const json expected_next =
        Comparable(undisturbed.Exchange(next, BodyFor(next, undisturbed, "ben")));
    EXPECT_EQ(Comparable(connection.Exchange(next, BodyFor(next, connection, "ben"))),
              expected_next)
        << next;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachPath, SentRequest,
                         ::testing::Values("/v1/check", "/v1/checks", "/v1/peek", "/v1/reserve",
                                           "/v1/settle", "/v1/refund", "/v1/reset"));

}  // namespace waiting_rights_test
}  // namespace headgate::front::api
