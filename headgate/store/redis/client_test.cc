// The client against a server that says what a test wants, over a real loopback socket.
#include "headgate/store/redis/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "headgate/net/server.h"
#include "headgate/net/spare_files.h"

namespace headgate::store::redis {
namespace client_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;
// The server's reply to a command. A text that ends with kCut ends the connection there.
using Answers = std::function<std::string(const Words& words)>;
constexpr std::string_view kCut = "<cut>";

class FakeRedis {
 public:
  explicit FakeRedis(Answers answers) : answers_(std::move(answers)) {
    const auto bound = server_.Listen(*net::ParseEndpoint("127.0.0.1:0"), [this](uint32_t) {
      return [this](std::span<const char>, const net::Peer&, net::Room) {
        return net::SessionChoice{.made = true, .session = std::make_unique<FakeSession>(*this)};
      };
    });
    EXPECT_TRUE(bound.ok()) << bound.status();
    port_ = bound->port;
    server_.Start();
  }
  uint16_t port() const { return port_; }
  int count(const std::string& command) {
    const std::lock_guard lock(mutex_);
    return counts_[command];
  }

 private:
  class FakeSession final : public net::Session {
   public:
    explicit FakeSession(FakeRedis& server) : server_(server) {}
    Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
      Progress progress;
      std::string_view text(input.data(), input.size());
      wire::RespReader reader;
      size_t consumed = 0;
      while (!text.empty() && reader.Read(text, consumed) == wire::RespReader::Step::kValue) {
        text.remove_prefix(consumed);
        progress.consumed += consumed;
        Words words;
        for (wire::RespValue& item : reader.value().items) words.push_back(std::move(item.text));
        std::string answer = server_.Answer(words);
        if (answer.ends_with(kCut)) {
          output += answer.substr(0, answer.size() - kCut.size());
          progress.close = true;
          return progress;
        }
        output += answer;
        reader = wire::RespReader();
      }
      return progress;
    }

   private:
    FakeRedis& server_;
  };

  std::string Answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    ++counts_[words[0]];
    const std::string answer = answers_(words);
    if (!answer.empty()) return answer;
    if (words[0] == "HELLO") return "%1\r\n+proto\r\n:3\r\n";
    if (words[0] == "INFO") return "$37\r\nrole:master\r\nmaster_replid:0123456789\r\n";
    if (words[0] == "CLUSTER") {
      const std::string port = std::to_string(port_);
      return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n";
    }
    return "+OK\r\n";
  }

  const Answers answers_;
  base::SystemClock source_;
  base::DisciplinedClock clock_{source_};
  std::mutex mutex_;
  std::map<std::string, int> counts_;
  uint16_t port_ = 0;
  net::SpareFiles spare_files_;
  net::Server server_{net::ServerOptions{}, clock_, spare_files_};
};

struct TestClient {
  explicit TestClient(const FakeRedis& server, TopologyKind topology = TopologyKind::kSingle,
                      const BreakerOptions& breaker = {}, const base::Clock* loop_clock = nullptr)
      : loop(loop_clock != nullptr ? *loop_clock : clock) {
    RedisOptions options{.topology = topology,
                         .servers = {{.host = "127.0.0.1", .port = server.port()}},
                         .timeout = 5s,
                         .wait_max = 0s,  // the timeout of a call is its bound
                         .connect_timeout = 5s,
                         .breaker = breaker};
    auto made = Client::Make(loop, options, 1);
    EXPECT_TRUE(made.ok()) << made.status();
    client = *std::move(made);
  }
  void Start(std::vector<std::string>& answers, base::Duration timeout = {}) {
    static const Script script = MakeScript("x", "text");
    client->Call({.script = &script, .key = "a"}, timeout, [&](const PendingCall::Outcome& reply) {
      answers.push_back(reply.ok() ? (*reply)->ToString()
                                   : std::string(absl::StatusCodeToString(reply.status().code())));
    });
  }
  std::string Call(base::Duration timeout = {}) {
    std::vector<std::string> answers;
    Start(answers, timeout);
    EXPECT_TRUE(loop.RunUntil([&] { return !answers.empty(); }, 20s));
    return answers.empty() ? "no answer" : answers[0];
  }

  base::SystemClock clock;
  net::EventLoop loop;
  std::unique_ptr<Client> client;
};

// Says `answer` to every EVALSHA.
Answers Always(std::string answer) {
  return [answer = std::move(answer)](const Words& words) {
    return words[0] == "EVALSHA" ? answer : "";
  };
}

// Says the answers one after the other, then OK.
Answers InTurn(std::vector<std::string> answers, std::string command = "EVALSHA") {
  return [answers = std::move(answers), command = std::move(command),
          at = size_t{0}](const Words& words) mutable {
    return words[0] == command && at < answers.size() ? answers[at++] : std::string();
  };
}

TEST(Client, FollowsAtMostFiveRedirects) {
  // A redirect to itself: the port is put in below, when it is known.
  uint16_t port = 0;
  FakeRedis looping([&port](const Words& words) {
    return words[0] == "EVALSHA" ? "-MOVED 15495 127.0.0.1:" + std::to_string(port) + "\r\n" : "";
  });
  port = looping.port();
  TestClient test(looping, TopologyKind::kCluster);
  EXPECT_EQ(test.Call(), "UNAVAILABLE");
  EXPECT_EQ(looping.count("EVALSHA"), 6);
  EXPECT_EQ(test.client->ReadCounters().redirects, 5u);
}

TEST(Client, ARedirectThatCannotBeFollowedIsAnAlarm) {
  FakeRedis server(Always("-MOVED 15495 127.0.0.1:7000\r\n"));
  TestClient test(server);
  EXPECT_EQ(test.Call(), "UNAVAILABLE");
  EXPECT_EQ(test.client->ReadCounters().alarms, 1u);
}

TEST(Client, TriesAgainOnceWhereTheServerSaysSo) {
  FakeRedis once(InTurn({"-TRYAGAIN later\r\n"}));
  TestClient test(once);
  EXPECT_EQ(test.Call(), "OK");
  EXPECT_EQ(once.count("EVALSHA"), 2);
  FakeRedis always(Always("-TRYAGAIN later\r\n"));
  TestClient other(always);
  EXPECT_EQ(other.Call(), "UNAVAILABLE");
  EXPECT_EQ(always.count("EVALSHA"), 2);
}

TEST(Client, DoesNotTryAgainWhereNoTimeIsLeftForIt) {
  FakeRedis server(Always("-TRYAGAIN later\r\n"));
  base::ManualClock still;
  TestClient test(server, TopologyKind::kSingle, {}, &still);
  EXPECT_EQ(test.Call(5ms), "UNAVAILABLE") << "at once";
  EXPECT_EQ(server.count("EVALSHA"), 1);
  EXPECT_EQ(test.client->ReadCounters().retries, 0u);
}

// Only the sentinels or the cluster know the new primary: a retry at the same server would fail
// again.
TEST(Client, TriesAgainBehindTheNextMapWhereTheServerBecameAReplica) {
  FakeRedis other(Always("+from the other\r\n"));
  bool moved = false;
  FakeRedis server([&](const Words& words) -> std::string {
    if (words[0] == "EVALSHA") {
      moved = true;
      return "-READONLY You can't write against a read only replica.\r\n";
    }
    if (words[0] != "CLUSTER" || !moved) return "";
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(other.port()) +
           "\r\n";
  });
  TestClient test(server, TopologyKind::kCluster);
  EXPECT_EQ(test.Call(), "from the other");
  EXPECT_EQ(server.count("EVALSHA"), 1);
}

TEST(Client, ForgetsAServerThatItsClusterNoLongerHas) {
  FakeRedis gone([](const Words& words) {
    return words[0] == "EVALSHA" || words[0] == "CLUSTER" ? "-CLUSTERDOWN The cluster is down\r\n"
                                                          : "";
  });
  FakeRedis next(Always("+from the next\r\n"));
  bool moved = false;
  FakeRedis seed([&](const Words& words) -> std::string {
    if (words[0] != "CLUSTER") return "";
    const std::string port = std::to_string(std::exchange(moved, true) ? next.port() : gone.port());
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n";
  });
  TestClient test(seed, TopologyKind::kCluster, {.failures_in_row = 1, .no_progress = 0s});
  EXPECT_EQ(test.Call(), "UNAVAILABLE");
  EXPECT_EQ(test.client->ReadCounters().breakers_open, 1u);
  ASSERT_TRUE(
      test.loop.RunUntil([&] { return test.client->ReadCounters().topology_changes == 2; }, 20s));
  EXPECT_EQ(test.Call(), "from the next");
  EXPECT_TRUE(
      test.loop.RunUntil([&] { return test.client->ReadCounters().breakers_open == 0; }, 20s));
}

TEST(Client, TriesAgainForATenthOfTheCallsAtMost) {
  FakeRedis server(Always("-TRYAGAIN later\r\n"));
  TestClient test(server);
  std::vector<std::string> answers;
  for (int i = 0; i < 1000; ++i) test.Start(answers);
  ASSERT_TRUE(test.loop.RunUntil([&] { return answers.size() == 1000; }, 20s));
  EXPECT_LE(server.count("EVALSHA"), 1000 + 100 + 10);
  EXPECT_GE(test.client->ReadCounters().retries_refused, 890u);
}

TEST(Client, LeavesAServerThatBecameAReplicaAndTriesOnAnotherConnection) {
  FakeRedis server(InTurn({"-READONLY You can't write against a read only replica.\r\n"}));
  TestClient test(server);
  EXPECT_EQ(test.Call(), "OK");
  EXPECT_EQ(server.count("HELLO"), 2);
}

TEST(Client, NeverSendsAgainWhatMayHaveBeenDone) {
  for (const std::string half :
       {"$5\r\nab", "", "*3\r\n:1\r\n", "$-7\r\n", "?\r\n", ":1x\r\n", "*99999999\r\n"}) {
    FakeRedis server(InTurn({half + std::string(kCut)}));
    TestClient test(server);
    EXPECT_EQ(test.Call(), "ABORTED") << half;
    EXPECT_EQ(test.Call(), "OK") << half;
    EXPECT_EQ(server.count("EVALSHA"), 2) << half;
  }
}

TEST(Client, AReplyThatIsCutOffAnywhereIsNoReply) {
  const std::string reply = "*2\r\n$5\r\nhello\r\n:12345\r\n";
  std::vector<std::string> answers;
  for (size_t cut = 0; cut < reply.size(); ++cut) {
    answers.push_back(reply.substr(0, cut) + std::string(kCut));
    answers.push_back("+OK\r\n");
  }
  FakeRedis server(InTurn(answers));
  TestClient test(server, TopologyKind::kSingle, {.failures_in_row = 1000});
  for (size_t cut = 0; cut < reply.size(); ++cut) {
    EXPECT_EQ(test.Call(), "ABORTED") << cut;
    EXPECT_EQ(test.Call(), "OK");
  }
  EXPECT_EQ(server.count("EVALSHA"), static_cast<int>(reply.size()) * 2);
}

TEST(Client, SendsTheTextWhereTheServerLacksTheScriptAndGivesUpWhereThatDoesNotHelp) {
  FakeRedis server([](const Words& words) {
    return words[0] == "EVALSHA" || words[0] == "EVAL"
               ? "-NOSCRIPT No matching script. Please use EVAL.\r\n"
               : "";
  });
  TestClient test(server);
  EXPECT_EQ(test.Call(), "UNAVAILABLE");
  EXPECT_EQ(server.count("EVALSHA"), 1);
  EXPECT_EQ(server.count("EVAL"), 1);
}

TEST(Client, LeavesAServerAloneThatKeepsFailing) {
  FakeRedis server(Always("-LOADING Redis is loading the dataset in memory\r\n"));
  TestClient test(server, TopologyKind::kSingle, {.no_progress = 0s});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(test.Call(), "UNAVAILABLE");
  EXPECT_EQ(server.count("EVALSHA"), 5);
  EXPECT_EQ(test.client->ReadCounters().breakers_open, 1u);
}

TEST(Client, ClosesABreakerForWhichNoCallComes) {
  FakeRedis server(InTurn(std::vector<std::string>(5, "-LOADING it loads its data\r\n")));
  TestClient test(server, TopologyKind::kSingle, {.no_progress = 0s});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(test.Call(), "UNAVAILABLE");
  ASSERT_EQ(test.client->ReadCounters().breakers_open, 1u);
  EXPECT_TRUE(
      test.loop.RunUntil([&] { return test.client->ReadCounters().breakers_open == 0; }, 20s));
  EXPECT_EQ(server.count("EVALSHA"), 5);
}

TEST(Client, SpeaksTheOldProtocolWhereTheServerKnowsNoOther) {
  FakeRedis server(InTurn({"-ERR unknown command `HELLO`\r\n"}, "HELLO"));
  TestClient test(server);
  EXPECT_EQ(test.Call(), "OK");
}

TEST(Client, RefusesWhatIsTooMuch) {
  // Does not answer scripts.
  FakeRedis server(
      [](const Words& words) { return words[0] == "EVALSHA" ? ">1\r\n+push\r\n" : ""; });
  TestClient test(server);
  std::vector<std::string> answers;
  for (int i = 0; i < 5000; ++i) test.Start(answers, 200ms);
  ASSERT_TRUE(test.loop.RunUntil([&] { return answers.size() == 5000; }, 20s));
  EXPECT_EQ(std::count(answers.begin(), answers.end(), "RESOURCE_EXHAUSTED"), 5000 - 4096);
  EXPECT_EQ(test.client->ReadCounters().calls_refused, 5000u - 4096);
}

TEST(Client, AWriteWaitsForMoreWhileMuchIsUnderWay) {
  // Does not answer scripts.
  FakeRedis server(
      [](const Words& words) { return words[0] == "EVALSHA" ? ">1\r\n+push\r\n" : ""; });
  base::ManualClock still;
  TestClient test(server, TopologyKind::kSingle, {}, &still);
  std::vector<std::string> answers;
  const auto arrived = [&](int count, base::Duration timeout) {
    const base::BootTime until = test.clock.BootNow() + timeout;
    const auto done = [&] {
      return server.count("EVALSHA") >= count || test.clock.BootNow() >= until;
    };
    return test.loop.RunUntil(done, 20s) && server.count("EVALSHA") >= count;
  };
  for (int i = 0; i < 3; ++i) test.Start(answers, 20s);
  ASSERT_TRUE(arrived(3, 20s));
  test.Start(answers, 20s);
  EXPECT_FALSE(arrived(4, 5ms)) << "three are in flight, and one has gathered";
  test.Start(answers, 20s);
  EXPECT_FALSE(arrived(5, 5ms));
  still.Advance(199us);
  EXPECT_FALSE(arrived(5, 5ms));
  still.Advance(1us);
  EXPECT_TRUE(arrived(5, 20s)) << "200 µs after the first of them, though nothing else happens";
  const StoreCounters counters = test.client->ReadCounters();
  EXPECT_EQ(counters.batched_calls.counts[1], 1u) << "of two";
  EXPECT_EQ(counters.batched_calls.counts[2], 1u) << "of three";
  EXPECT_EQ(counters.batched_calls.sum, 5u);
}

TEST(Client, MayGoWhileCallsAreUnderWay) {
  FakeRedis server(Always(">1\r\n+push\r\n"));
  TestClient test(server);
  std::vector<std::string> answers;
  test.Start(answers);
  EXPECT_FALSE(
      test.loop.RunUntil([&] { return server.count("EVALSHA") > 0 && !answers.empty(); }, 50ms));
  test.client.reset();
  EXPECT_FALSE(test.loop.RunUntil([&] { return !answers.empty(); }, 10ms))
      << "nobody is called any more";
}

TEST(Client, LivesOnAServersLoop) {
  FakeRedis store(Always("+from the loop\r\n"));
  const base::SystemClock source;
  const base::DisciplinedClock clock(source);
  net::SpareFiles spare_files;
  net::Server server(net::ServerOptions{.threads = 2}, clock, spare_files);
  std::array<std::unique_ptr<Client>, 2> clients;
  std::array<std::atomic<bool>, 2> answered{};
  static const Script script = MakeScript("x", "text");
  for (uint32_t i = 0; i < 2; ++i) {
    auto made = Client::Make(server.loop(i),
                             {.servers = {{.host = "127.0.0.1", .port = store.port()}},
                              .timeout = 5s,
                              .connect_timeout = 5s},
                             i);
    ASSERT_TRUE(made.ok());
    clients[i] = *std::move(made);
  }
  server.Start();
  for (uint32_t i = 0; i < 2; ++i) {
    server.loop(i).Post([&, i] {
      clients[i]->Call({.script = &script, .key = "a"}, {},
                       [&, i](const PendingCall::Outcome& reply) {
                         answered[i] = reply.ok() && (*reply)->text == "from the loop";
                       });
    });
  }
  const base::BootTime deadline = source.BootNow() + 20s;
  while (!(answered[0] && answered[1]) && source.BootNow() < deadline) std::this_thread::yield();
  EXPECT_TRUE(answered[0] && answered[1]);
  server.Stop();
  clients = {};
}

}  // namespace client_test
}  // namespace headgate::store::redis
