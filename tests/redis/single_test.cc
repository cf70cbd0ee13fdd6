// The client against one real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "headgate/store/big_endian.h"
#include "headgate/store/redis/heartbeat.h"
#include "headgate/store/redis/redis_store.h"
#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"
#include "tests/redis/timed_store.h"

namespace headgate::redis_test {
namespace single_test {

using store::redis::RedisOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

TEST(Single, RunsAScriptThatTheServerDoesNotKnowYet) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"5"}), "5");
  EXPECT_EQ(test.Call(AddScript(), "a", {"2"}), "7");
  const auto counters = test.client->ReadCounters();
  EXPECT_EQ(counters.calls_answered, 2u);
  EXPECT_EQ(counters.script_misses, 1u);
  EXPECT_THAT(test.connections, ElementsAre(fmt::format("127.0.0.1:{} up", server.port())));
  EXPECT_EQ(test.HistoryChanges(), 0u);
}

TEST(Single, CallsOfOneLoopTurnAreSentTogetherAndAnsweredInOrder) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  const auto before = test.client->ReadCounters();
  std::vector<std::string> answers;
  for (int i = 0; i < 500; ++i) {
    const std::string_view argument = "1";
    test.client->Call({.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
                      [&](const store::redis::PendingCall::Outcome& reply) {
                        answers.push_back(test.Text(reply));
                      });
  }
  EXPECT_TRUE(test.Until([&] { return answers.size() == 500; }));
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], std::to_string(i + 2));
  const auto after = test.client->ReadCounters();
  EXPECT_EQ(after.batched_calls.sum, before.batched_calls.sum + 500);
  // Batches of 257 to 512 calls.
  EXPECT_EQ(after.batched_calls.counts[9], 1u);
  EXPECT_EQ(std::accumulate(after.call_ns.counts.begin(), after.call_ns.counts.end(), uint64_t{0}),
            501u);
}

TEST(Single, WorksAfterTheServerHasForgottenItsScripts) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  std::vector<std::string> answers;
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(server.Ask("SCRIPT FLUSH"), "+OK\r\n");
    for (int i = 0; i < 100; ++i) {
      const std::string_view argument = "1";
      test.client->Call({.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
                        [&](const store::redis::PendingCall::Outcome& reply) {
                          answers.push_back(test.Text(reply));
                        });
    }
    ASSERT_TRUE(
        test.Until([&] { return answers.size() == 100 * (static_cast<size_t>(round) + 1); }));
  }
  EXPECT_EQ(server.Ask("GET a"), "$4\r\n1000\r\n") << "each call was executed once";
  for (const std::string& answer : answers) EXPECT_NE(answer, "Unavailable");
  // The first call of each round sent the script text, the others its name.
  EXPECT_LT(test.client->ReadCounters().bytes_written, 500'000u);
}

// A log whose value fills the largest possible reply.
TEST(Single, TheLongestLogIsCarriedOverToAnotherLimit) {
  static const store::redis::Script fill =
      store::redis::MakeScript("fill",
                               "redis.call('RPUSH', KEYS[1], ARGV[1]) for i = 1, 1000 do "
                               "redis.call('RPUSH', KEYS[1], unpack(ARGV, 2)) end");
  constexpr base::Instant kNow = base::Instant::FromNanos(1'790'000'000'000'000'000);
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  store::LimitTable limits;
  TimedStore store(*test.client, limits, kNow);
  algorithm::LimitSpec spec{.algorithm = algorithm::Algorithm::kSlidingWindowLog,
                            .requests = algorithm::kLogRequestsMax,
                            .period = 1h};
  std::string header;
  store::AppendLimit(spec, header);
  store::Packer(header).U32(algorithm::kLogRequestsMax).U64(static_cast<uint64_t>(kNow.ns));
  std::string hit;
  store::Packer(hit).U64(static_cast<uint64_t>(kNow.ns)).U32(1);
  std::vector<std::string_view> arguments(101, hit);
  arguments[0] = header;
  EXPECT_EQ(test.Call(fill, "hg:{k}", arguments), "nil");
  EXPECT_EQ(server.Ask("LLEN hg:{k}"), ":100001\r\n");

  spec.period = 2h;
  std::optional<store::SharedAnswer> answer;
  store.Ask(
      {.name = "hg:{k}", .limit = *limits.Intern(*algorithm::Limit::Make(spec)), .timeout = 20s},
      [&](const store::SharedAnswer& given) { answer = given; });
  ASSERT_TRUE(test.Until([&] { return answer.has_value(); }));
  EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_TRUE(answer->events.carried_over);
  EXPECT_FALSE(answer->decision.allowed);
  EXPECT_EQ(test.client->ReadCounters().disconnects, 0u);
}

// Logs and queues are never leased, whatever the rule says.
TEST(Single, ARequestUnderALeasedRuleCarriesOverLogsAndQueues) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  store::LimitTable limits;
  store::redis::RedisStore store(*test.client, limits, {});
  for (const auto algorithm :
       {algorithm::Algorithm::kSlidingWindowLog, algorithm::Algorithm::kLeakyBucketQueue}) {
    for (const uint64_t requests : {10u, 20u}) {
      std::optional<store::SharedAnswer> answer;
      const algorithm::LimitSpec spec{
          .algorithm = algorithm, .requests = requests, .period = 1h, .burst = std::nullopt};
      store.Ask({.name = fmt::format("hg:{{{}}}", static_cast<int>(algorithm)),
                 .limit = *limits.Intern(*algorithm::Limit::Make(spec)),
                 .leased = true},
                [&](const store::SharedAnswer& given) { answer = given; });
      ASSERT_TRUE(test.Until([&] { return answer.has_value(); }));
      EXPECT_TRUE(answer->status.ok()) << answer->status;
      EXPECT_EQ(answer->events.carried_over, requests == 20);
    }
  }
}

TEST(Single, AnErrorInAScriptIsReturnedToTheCaller) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_THAT(test.Call(AddScript(), "a", {"x"}), HasSubstr("-ERR value is not an integer"));
  EXPECT_EQ(test.client->ReadCounters().calls_answered, 1u);
}

TEST(Single, AnErrorForAWrongTypeIsNotTakenForAnAnswer) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(server.Ask("LPUSH a 1"), ":1\r\n");
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "INTERNAL");
  EXPECT_THAT(test.alarms, ElementsAre(HasSubstr("WRONGTYPE")));
}

TEST(Single, WorksOverAUnixSocketInADatabaseWithAUserAndAPassword) {
  RedisProcess server({"--user", "gate", "on", ">secret", "~hg:*", "+@all"});
  RedisOptions options = TestClient::Single(server.port());
  options.servers = {{.unix_path = server.folder() + "/socket"}};
  options.user = "gate";
  options.password = "secret";
  options.database = 3;
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "hg:a", {"5"}), "5");
  EXPECT_THAT(server.Ask("INFO keyspace"), HasSubstr("db3:keys=1"));
  EXPECT_THAT(server.Ask("CLIENT LIST"), HasSubstr("name=headgate"));
  EXPECT_EQ(test.Call(AddScript(), "other", {"5"}), "PERMISSION_DENIED");
  EXPECT_EQ(test.Call(AddScript(), "hg:a", {"5"}), "PERMISSION_DENIED")
      << "no new attempt within a second";
  test.Run(1s);
  EXPECT_EQ(test.Call(AddScript(), "hg:a", {"5"}), "10");
}

TEST(Single, AWrongPasswordIsReportedWithoutPrintingIt) {
  RedisProcess server({"--requirepass", "right"});
  RedisOptions options = TestClient::Single(server.port());
  options.password = "wrong-secret";
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"5"}), "PERMISSION_DENIED");
  test.Run(2500ms);
  ASSERT_EQ(test.connections.size(), 1u) << "an unchanged error is reported once";
  EXPECT_THAT(test.connections[0], ::testing::Not(HasSubstr("secret")));
  EXPECT_GE(test.client->ReadCounters().disconnects, 2u);
  EXPECT_LE(test.client->ReadCounters().disconnects, 3u) << "once a second";
  EXPECT_EQ(test.client->ReadCounters().alarms, test.client->ReadCounters().disconnects);
}

TEST(Single, TimesOutWhileTheServerHangsAndRecoversAfterwards) {
  RedisProcess server;
  RedisOptions options = TestClient::Single(server.port());
  options.reply_overdue = 20s;
  options.breaker.no_progress = 0s;
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  server.Freeze();
  const base::BootTime begin = test.clock.BootNow();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}, 20ms), "DEADLINE_EXCEEDED");
  EXPECT_LT(test.clock.BootNow() - begin, 2s);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}, 20ms), "UNAVAILABLE") << "the breaker is open";
  EXPECT_THAT(test.breaker, ElementsAre("open"));
  server.Thaw();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "a", {"0"}) == "6"; }))
      << "the five calls were executed late";
  EXPECT_EQ(test.client->ReadCounters().late_replies, 5u);
  EXPECT_EQ(test.breaker.back(), "closed");
}

TEST(Single, CallsSentToAServerThatDiedAreReportedAsPossiblyExecuted) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  server.Freeze();
  std::string answer;
  const std::string_view argument = "1";
  test.client->Call(
      {.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
      [&](const store::redis::PendingCall::Outcome& reply) { answer = test.Text(reply); });
  test.Run(10ms);
  server.Kill();
  EXPECT_TRUE(test.Until([&] { return !answer.empty(); }));
  EXPECT_EQ(answer, "ABORTED");
  test.Run(100ms);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_EQ(test.HistoryChanges(), 0u);
  server.Start();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "b", {"0"}) == "0"; }));
  EXPECT_EQ(test.HistoryChanges(), 1u);
  EXPECT_TRUE(test.client->LearningUntil("a").has_value());
}

TEST(Single, ReconnectsQuicklyWhenItsConnectionsAreKilled) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  for (int i = 2; i < 7; ++i) {
    EXPECT_THAT(server.Ask("CLIENT KILL TYPE normal SKIPME yes"), HasSubstr(":"));
    test.Run(1ms);
    EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), std::to_string(i))
        << "the call waits for the next connection";
  }
}

TEST(Single, WarnsAboutAnEvictionPolicyOrRefusesTheServer) {
  RedisProcess server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  RedisOptions options = TestClient::Single(server.port());
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  EXPECT_THAT(test.policies, ElementsAre("allkeys-lru"));
  options.strict_store = true;
  TestClient strict(options);
  EXPECT_EQ(strict.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(strict.connections, ElementsAre(HasSubstr("set maxmemory-policy noeviction")));
  EXPECT_GE(strict.client->ReadCounters().alarms, 1u);
  EXPECT_TRUE(strict.Until([&] { return strict.client->ReadCounters().alarms >= 3; }));
  EXPECT_EQ(strict.connections.size(), 1u) << "counted each time, reported once";
  EXPECT_THAT(strict.policies, ::testing::IsEmpty());
}

TEST(Single, AnEvictionPolicyIsReportedOncePerServer) {
  RedisProcess server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  EXPECT_THAT(server.Ask("CLIENT KILL TYPE normal SKIPME yes"), HasSubstr(":"));
  test.Run(1ms);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "2");
  EXPECT_THAT(test.policies, ElementsAre("allkeys-lru"));
}

TEST(Single, AServerOutOfMemoryCountsAsUnavailable) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  EXPECT_EQ(server.Ask("CONFIG SET maxmemory 1"), "+OK\r\n");
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(test.alarms, ElementsAre(HasSubstr("OOM")));
}

TEST(Single, RefusesToWriteToAReplica) {
  RedisProcess primary;
  RedisProcess replica({"--replicaof", fmt::format("127.0.0.1 {}", primary.port())});
  TestClient test(TestClient::Single(replica.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(test.connections.back(), HasSubstr("it is a replica"));
}

TEST(Single, DisconnectsFromAServerThatBecomesAReplica) {
  RedisProcess primary;
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  EXPECT_THAT(server.Ask(fmt::format("REPLICAOF 127.0.0.1 {}", primary.port())), HasSubstr("OK"));
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(server.Ask("REPLICAOF NO ONE"), HasSubstr("OK"));
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "b", {"0"}) == "0"; }));
}

TEST(Single, InstancesAreCountedByTheirHeartbeats) {
  RedisProcess server;
  TestClient a(TestClient::Single(server.port()));
  TestClient b(TestClient::Single(server.port()));
  const store::redis::HeartbeatOptions options = {.interval = 20ms, .silence_max = 300ms};
  store::redis::Heartbeat one(*a.client, "one", options);
  EXPECT_EQ(one.instances(), 1u);
  auto two = std::make_unique<store::redis::Heartbeat>(*b.client, "two", options);
  EXPECT_TRUE(b.Until([&] { return b.client->ReadCounters().calls_answered >= 3; }));
  EXPECT_TRUE(a.Until([&] { return one.instances() == 2; }));
  two.reset();
  EXPECT_TRUE(a.Until([&] { return one.instances() == 1; }))
      << "the other instance has been silent for too long";
  EXPECT_EQ(a.client->ReadCounters().script_misses + b.client->ReadCounters().script_misses, 1u);
  bool left = false;
  one.Leave([&] { left = true; });
  EXPECT_TRUE(a.Until([&] { return left; }));
  EXPECT_EQ(server.Ask("ZCARD hg:instances"), ":0\r\n");
}

TEST(Single, ARefusedHeartbeatIsReportedOncePerChange) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  std::vector<std::string> told;
  const auto tell = [&](const std::string& error) { told.push_back(error); };
  store::redis::Heartbeat heartbeat(*test.client, "one", {.interval = 10ms, .on_error = tell});
  const auto beats = [&](uint64_t count) {
    const uint64_t until = test.client->ReadCounters().calls_answered + count;
    return test.Until([&] { return test.client->ReadCounters().calls_answered >= until; });
  };
  ASSERT_TRUE(beats(3));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(heartbeat.errors(), 0u);
  EXPECT_THAT(server.Ask("ACL SETUSER default -zcard"), HasSubstr("OK"));
  ASSERT_TRUE(test.Until([&] { return heartbeat.errors() >= 3; }));
  EXPECT_THAT(told, ElementsAre(Ne("")));
  EXPECT_THAT(server.Ask("ACL SETUSER default +zcard"), HasSubstr("OK"));
  ASSERT_TRUE(test.Until([&] { return told.size() >= 2; }));
  ASSERT_TRUE(beats(3));
  EXPECT_THAT(told, ElementsAre(Ne(""), ""));
}

TEST(Single, ReconnectsSoonAfterALongOutageWithFewAttemptsDuringIt) {
  RedisProcess server;
  RedisOptions options = TestClient::Single(server.port());
  options.timeout = 10ms;
  options.connect_timeout = 50ms;
  TestClient test(options);
  ASSERT_TRUE(test.Until([&] { return test.Call(AddScript(), "a", {"1"}) != "UNAVAILABLE"; }));
  server.Kill();
  const base::BootTime down = test.clock.BootNow();
  uint64_t calls = 0;
  while (test.clock.BootNow() - down < 4s) {
    EXPECT_NE(test.Call(AddScript(), "a", {"1"}), "no answer");
    ++calls;
    test.Run(1ms);
  }
  const auto meanwhile = test.client->ReadCounters();
  EXPECT_GT(calls, 500u);
  EXPECT_LE(meanwhile.disconnects, 40u) << "at most ten attempts a second";
  server.Start();
  const base::BootTime healed = test.clock.BootNow();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "b", {"0"}, 1s) == "0"; }));
  EXPECT_LT(test.clock.BootNow() - healed, 4s);
}

TEST(Single, UsesSeveralConnectionsIfConfigured) {
  RedisProcess server;
  RedisOptions options = TestClient::Single(server.port());
  options.connections_per_server = 3;
  options.in_flight_max = 16;
  TestClient test(options);
  int answered = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string_view argument = "1";
    test.client->Call(
        {.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
        [&](const store::redis::PendingCall::Outcome& reply) { answered += reply.ok() ? 1 : 0; });
  }
  EXPECT_TRUE(test.Until([&] { return answered == 1000; }));
  EXPECT_EQ(server.Ask("GET a"), "$4\r\n1000\r\n");
  const std::string clients = server.Ask("CLIENT LIST");
  size_t named = 0;
  for (size_t at = 0; (at = clients.find("name=headgate", at)) != std::string::npos; ++at) ++named;
  EXPECT_EQ(named, 3u);
}

TEST(Single, ARingSpreadsKeysOverIndependentServers) {
  RedisProcess a, b, c;
  RedisOptions options = TestClient::Single(a.port());
  options.topology = store::redis::TopologyKind::kRing;
  for (const RedisProcess* server : {&b, &c})
    options.servers.push_back({.host = "127.0.0.1", .port = server->port()});
  TestClient test(options);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(test.Call(AddScript(), "k" + std::to_string(i), {"1"}), "1");
  for (const RedisProcess* server : {&a, &b, &c})
    EXPECT_THAT(server->Ask("INFO keyspace"), HasSubstr("db0:keys="));
}

// When its first replica connects, the server changes its replication id and continues as before.
TEST(Single, AttachingAFirstReplicaKeepsTheHistory) {
  RedisProcess server;
  TestClient test(TestClient::Single(server.port()));
  const auto id = [&] {
    return server.Ask("INFO replication")
        .substr(server.Ask("INFO replication").find("master_replid:"), 54);
  };
  EXPECT_EQ(test.Learn("a"), "OK");
  const std::string before = id();
  RedisProcess replica({"--replicaof", fmt::format("127.0.0.1 {}", server.port()),
                        "--repl-diskless-sync-delay", "0"});
  EXPECT_TRUE(test.Until([&] { return id() != before; }));
  test.Run(1200ms);
  EXPECT_EQ(test.Learn("a"), "OK");
  EXPECT_EQ(test.HistoryChanges(), 0u);
  EXPECT_EQ(test.client->ReadCounters().disconnects, 0u);
}

// Calls that depend on the outstanding leases do not wait while a history is learned: they fail at
// once, and other calls are sent.
TEST(Single, CallsThatDependOnLeasesFailWhileAHistoryIsLearned) {
  RedisProcess server;
  RedisOptions options = TestClient::Single(server.port());
  options.lease_ttl = 1s;
  TestClient test(options);
  EXPECT_EQ(test.Learn("a"), "OK");
  server.Kill();
  server.Start();
  EXPECT_TRUE(test.Until([&] { return test.Call(AddScript(), "b", {"1"}) == "1"; }))
      << "other calls are sent";
  EXPECT_EQ(test.Learn("a"), "UNAVAILABLE");
  EXPECT_EQ(test.ReadLearning(), 1u);
  EXPECT_TRUE(test.Until([&] { return test.Learn("a") == "OK"; }));
  EXPECT_EQ(test.HistoryChanges(), 1u);
  EXPECT_THAT(test.learning, ElementsAre("restarted", "over"));
}

// A replica is promoted while our connection to it stays open: only INFO reveals this.
TEST(Single, NoticesAPromotionOnAnOpenConnection) {
  RedisProcess primary;
  RedisProcess server({"--repl-diskless-sync-delay", "0"});
  TestClient test(TestClient::Single(server.port()));
  EXPECT_EQ(test.Learn("a"), "OK");
  EXPECT_THAT(server.Ask(fmt::format("REPLICAOF 127.0.0.1 {}", primary.port())), HasSubstr("OK"));
  EXPECT_TRUE(test.Until([&] {
    return server.Ask("INFO replication").find("master_link_status:up") != std::string::npos;
  }));
  EXPECT_THAT(server.Ask("REPLICAOF NO ONE"), HasSubstr("OK"));
  EXPECT_TRUE(test.Until([&] { return test.HistoryChanges() == 1; }));
  EXPECT_TRUE(test.Until([&] { return test.Learn("a") == "OK"; }));
}

}  // namespace single_test
}  // namespace headgate::redis_test
