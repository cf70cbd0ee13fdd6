// The client against a real primary with a replica, watched by sentinels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace {

using store::redis::RedisOptions;
using ::testing::HasSubstr;

TEST(Sentinel, FollowsTheMasterWhenItDies) {
  RedisProcess primary;
  RedisProcess replica({"--replicaof", fmt::format("127.0.0.1 {}", primary.port()), "--repl-diskless-sync-delay", "0"});
  const std::string configuration = fmt::format(
      "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\n"
      "sentinel failover-timeout main 3000\n",
      primary.port());
  RedisProcess sentinel = RedisProcess::Sentinel(configuration);
  RedisProcess stranger = RedisProcess::Sentinel("");
  const base::SystemClock clock;
  const base::BootTime deadline = clock.BootNow() + 20s;
  while (sentinel.Ask("SENTINEL master main").find("num-slaves\r\n$1\r\n1") == std::string::npos) {
    ASSERT_LT(clock.BootNow(), deadline);
    std::this_thread::yield();
  }

  RedisOptions options = TestClient::Single(stranger.port());
  options.servers.push_back({.host = "127.0.0.1", .port = sentinel.port()});
  options.topology = store::redis::TopologyKind::kSentinel;
  options.master_name = "main";
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1") << "the first sentinel does not know the name, the second does";
  EXPECT_EQ(test.client->EpochOf("a")->changed_at, std::nullopt);
  EXPECT_THAT(primary.Ask("WAIT 1 5000"), HasSubstr(":1"));

  primary.Kill();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "a", {"0"}, 200ms) == "1"; }, 30s));
  EXPECT_THAT(replica.Ask("INFO replication"), HasSubstr("role:master"));
  EXPECT_NE(test.client->EpochOf("a")->changed_at, std::nullopt);
}

TEST(Sentinel, SaysSoWhereNobodyKnowsTheMaster) {
  RedisProcess stranger = RedisProcess::Sentinel("");
  RedisOptions options = TestClient::Single(stranger.port());
  options.topology = store::redis::TopologyKind::kSentinel;
  options.master_name = "main";
  options.timeout = 300ms;
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
}

}  // namespace
}  // namespace headgate::redis_test
