// The client against a real primary with a replica, watched by sentinels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace sentinel_test {

using store::redis::RedisOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sentinel, FollowsAFailoverWhenTheMasterDies) {
  RedisProcess primary;
  RedisProcess replica({"--replicaof", fmt::format("127.0.0.1 {}", primary.port()),
                        "--repl-diskless-sync-delay", "0"});
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
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1")
      << "the first sentinel does not know the name, the second does";
  EXPECT_EQ(test.HistoryChanges(), 0u);
  EXPECT_THAT(primary.Ask("WAIT 1 5000"), HasSubstr(":1"));

  primary.Kill();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "a", {"0"}, 200ms) == "1"; }, 30s));
  EXPECT_THAT(replica.Ask("INFO replication"), HasSubstr("role:master"));
  EXPECT_EQ(test.HistoryChanges(), 1u);
  test.Run(2500ms);
  EXPECT_EQ(test.HistoryChanges(), 1u) << "the address changes, the history continues";
}

// The servers and the sentinel have different logins; neither login is sent to the wrong one.
TEST(Sentinel, UsesSeparatePasswordsForSentinelsAndServers) {
  RedisProcess primary({"--requirepass", "of-the-server"});
  RedisProcess sentinel = RedisProcess::Sentinel(
      fmt::format("sentinel monitor main 127.0.0.1 {} 1\nsentinel auth-pass main of-the-server\n"
                  "requirepass of-the-sentinel\n"
                  "user headgate on >of-its-user +hello +sentinel|get-master-addr-by-name\n",
                  primary.port()));
  RedisOptions options = TestClient::Single(sentinel.port());
  options.topology = store::redis::TopologyKind::kSentinel;
  options.master_name = "main";
  options.password = "of-the-server";
  options.sentinel_password = "of-the-sentinel";
  {
    TestClient test(options);
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  }
  {
    RedisOptions as_user = options;
    as_user.sentinel_user = "headgate";
    as_user.sentinel_password = "of-its-user";
    TestClient test(as_user);
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "2");
  }
  for (const char* wrong : {"", "of-the-server"}) {
    RedisOptions refused = options;
    refused.sentinel_password = wrong;
    refused.timeout = 300ms;
    TestClient test(refused);
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE") << wrong;
    // The error names the reason, but not the password.
    EXPECT_TRUE(test.Until([&] { return !test.connections.empty(); }));
    EXPECT_THAT(test.connections,
                ::testing::Contains(::testing::AnyOf(HasSubstr("NOAUTH"), HasSubstr("WRONGPASS"))));
    EXPECT_THAT(test.connections, ::testing::Not(::testing::Contains(HasSubstr("of-the-s"))));
  }
}

TEST(Sentinel, ReportsThatNoSentinelKnowsTheMaster) {
  RedisProcess stranger = RedisProcess::Sentinel("");
  RedisOptions options = TestClient::Single(stranger.port());
  options.topology = store::redis::TopologyKind::kSentinel;
  options.master_name = "main";
  options.timeout = 300ms;
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(test.topologies, ElementsAre("it does not know the master 'main'")) << "once";
  EXPECT_GE(test.client->ReadCounters().alarms, 1u);
  EXPECT_THAT(stranger.Ask(fmt::format("SENTINEL MONITOR main 127.0.0.1 {} 1", stranger.port())),
              HasSubstr("OK"));
  EXPECT_TRUE(test.Until([&] { return test.topologies.size() == 2; }));
  EXPECT_EQ(test.topologies[1], "well");
}

// The URL names another kind of topology than the server has.
TEST(Sentinel, ReportsAServerOfTheWrongTopology) {
  RedisProcess server;
  for (const auto kind :
       {store::redis::TopologyKind::kSentinel, store::redis::TopologyKind::kCluster}) {
    RedisOptions options = TestClient::Single(server.port());
    options.topology = kind;
    if (kind == store::redis::TopologyKind::kSentinel) options.master_name = "main";
    options.timeout = 500ms;
    TestClient test(options);
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
    const bool sentinel = kind == store::redis::TopologyKind::kSentinel;
    EXPECT_THAT(test.topologies, ElementsAre(HasSubstr(sentinel ? "unknown command 'SENTINEL'"
                                                                : "cluster support disabled")));
    EXPECT_GE(test.client->ReadCounters().alarms, 1u);
  }
}

}  // namespace sentinel_test
}  // namespace headgate::redis_test
