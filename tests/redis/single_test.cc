// The client against one real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Single, RunsAScriptThatTheServerDoesNotKnowYet) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"5"}), "5");
  EXPECT_EQ(test.Call(AddScript(), "a", {"2"}), "7");
  const auto counters = test.client->ReadCounters();
  EXPECT_EQ(counters.calls_answered, 2u);
  EXPECT_EQ(counters.script_misses, 1u);
  EXPECT_THAT(test.connections, ElementsAre(fmt::format("127.0.0.1:{} up", server.port())));
  ASSERT_TRUE(test.client->EpochOf("a").has_value());
  const std::string info = server.Ask("INFO replication");
  EXPECT_THAT(info, HasSubstr(fmt::format("master_replid:{:016x}", test.client->EpochOf("a")->id)));
}

TEST(Single, CallsOfOneTurnTravelTogetherAndAreAnsweredInOrder) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  const uint64_t batches = test.client->ReadCounters().batches;
  std::vector<std::string> answers;
  for (int i = 0; i < 500; ++i) {
    const std::string_view argument = "1";
    test.client->Call({.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
                      [&](absl::StatusOr<wire::RespValue> reply) { answers.push_back(test.Text(reply)); });
  }
  EXPECT_TRUE(test.Until([&] { return answers.size() == 500; }));
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], std::to_string(i + 2));
  EXPECT_EQ(test.client->ReadCounters().batches, batches + 1);
}

}  // namespace
}  // namespace headgate::redis_test
