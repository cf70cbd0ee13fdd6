#include "headgate/store/dynamodb/instances.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "headgate/client/http/test_http_server.h"

namespace headgate::store::dynamodb {
namespace instances_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TestInstances {
 public:
  explicit TestInstances(const client::http::HttpRig& server)
      : credentials(loop, clock,
                    {.environment =
                         [](const char* name) {
                           const std::string_view variable = name;
                           return std::string(variable.starts_with("AWS_ACCESS_KEY_ID") ||
                                                      variable.starts_with("AWS_SECRET")
                                                  ? "x"
                                                  : "");
                         }}),
        http(loop, {.origin = server.origin()}),
        client(http, clock, credentials,
               {.name = "limits", .region = "local", .endpoint = server.origin()}),
        instances(client, loop, clock,
                  {.instance = "me",
                   .pause = 20ms,
                   .silence_max = 10s,
                   .on_error = [this](const std::string& error) { errors.push_back(error); },
                   .on_alarm = [this](const std::string& alarm) { alarms.push_back(alarm); }}) {
    instances.Begin();
  }
  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 20s); }

  std::vector<std::string> errors;
  std::vector<std::string> alarms;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  CredentialSource credentials;
  client::http::Client http;
  TableClient client;
  Instances instances;
};

std::string Beats(const std::vector<std::pair<std::string, base::Duration>>& ages) {
  std::string attributes;
  for (const auto& [instance, age] : ages) {
    attributes += fmt::format(R"({}"i:{}": {{"N": "{}"}})", attributes.empty() ? "" : ", ",
                              instance, (base::SystemClock().WallNow() - age).ns / 1'000'000);
  }
  return "{\"Attributes\": {" + attributes + "}}";
}

bool HasSeen(const client::http::HttpRig& server, const std::string& text) {
  for (const client::http::RigRequest& request : server.requests())
    if (request.body.find(text) != std::string::npos) return true;
  return false;
}

TEST(Instances, CountsThoseWithAHeartbeatAndRemovesTheSilent) {
  client::http::HttpRig server([](const client::http::RigRequest&) {
    return client::http::RigReply{.body = Beats({{"me", 0s}, {"other", 5s}, {"gone", 60s}})};
  });
  TestInstances test(server);
  EXPECT_EQ(test.instances.count(), 1u) << "before the first answer";
  ASSERT_TRUE(test.Until([&] { return test.instances.count() == 2; }));
  EXPECT_TRUE(test.Until([&] { return HasSeen(server, R"("#r0":"i:gone")"); }));
  bool left = false;
  test.instances.Leave(10s, [&] { left = true; });
  ASSERT_TRUE(test.Until([&] { return left; }));
  EXPECT_TRUE(HasSeen(server, R"("UpdateExpression":"REMOVE #i")"));
  const size_t seen = server.requests_seen();
  EXPECT_FALSE(test.loop.RunUntil([] { return false; }, 100ms));
  EXPECT_EQ(server.requests_seen(), seen) << "no heartbeat comes afterwards";
}

// A heartbeat of the future is certain; one of the past may be an old one of a right clock.
TEST(Instances, AnotherClockThatIsAheadIsAnAlarmOnce) {
  std::atomic<bool> is_ahead{false};
  client::http::HttpRig server([&](const client::http::RigRequest&) {
    return client::http::RigReply{.body = Beats({{"me", 0s},
                                                 {"late", 5s},
                                                 {"near", is_ahead ? 0s : -50ms},
                                                 {"far", is_ahead ? -5s : 0s}})};
  });
  TestInstances test(server);
  ASSERT_TRUE(test.Until([&] { return server.requests_seen() > 10; }));
  EXPECT_THAT(test.alarms, IsEmpty());
  is_ahead = true;
  ASSERT_TRUE(test.Until([&] { return !test.alarms.empty(); }));
  const size_t seen = server.requests_seen();
  ASSERT_TRUE(test.Until([&] { return server.requests_seen() > seen + 5; }));
  EXPECT_THAT(test.alarms, ElementsAre(HasSubstr("the clock of the instance far is ")));
}

TEST(Instances, SaysOnceThatHeartbeatsAreRefused) {
  std::atomic<bool> is_refused{true};
  client::http::HttpRig server([&](const client::http::RigRequest& request) {
    if (request.method == "GET" || !is_refused)
      return client::http::RigReply{.body = Beats({{"me", 0s}, {"other", 0s}})};
    return client::http::RigReply{.status = 400,
                                  .body = R"({"__type": "a#AccessDeniedException"})"};
  });
  TestInstances test(server);
  ASSERT_TRUE(test.Until([&] { return test.instances.errors() >= 3; }));
  EXPECT_THAT(test.errors, ElementsAre("DynamoDB answered 400 AccessDeniedException"));
  EXPECT_EQ(test.instances.count(), 1u);
  is_refused = false;
  ASSERT_TRUE(test.Until([&] { return test.errors.size() == 2; }));
  EXPECT_EQ(test.errors[1], "");
  EXPECT_EQ(test.instances.count(), 2u);
}

}  // namespace instances_test
}  // namespace headgate::store::dynamodb
