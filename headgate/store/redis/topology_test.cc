// The locations of keys, tested as dialogues: no sockets, no clock.
#include "headgate/store/redis/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/check.h"
#include "headgate/store/redis/key_slot.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {
namespace topology_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Optional;

base::BootTime At(base::Duration d) { return base::BootTime{0} + 1h + d; }

net::StreamTarget Server(uint16_t port, std::string host = "h") {
  return {.host = std::move(host), .port = port};
}

wire::RespValue Reply(std::string_view bytes) {
  wire::RespReader reader;
  size_t consumed = 0;
  HEADGATE_CHECK(reader.Read(bytes, consumed) == wire::RespReader::Step::kValue);
  return reader.value();
}

// Slots up to `split` are at port 1, the others at port 2.
wire::RespValue TwoNodes(int split) {
  return Reply("*2\r\n*3\r\n:0\r\n:" + std::to_string(split) +
               "\r\n*2\r\n$1\r\nh\r\n:1\r\n*3\r\n:" + std::to_string(split + 1) +
               "\r\n:16383\r\n*3\r\n$1\r\nh\r\n:2\r\n$2\r\nid\r\n");
}

struct Cluster {
  Cluster()
      : topology(MakeTopology(
            {.topology = TopologyKind::kCluster, .servers = {Server(1), Server(9)}}, 7)) {}
  uint16_t PortOf(std::string_view key) const {
    const auto server = topology->Find(key);
    return server ? topology->servers()[*server].port : 0;
  }
  // Asks when it is time, at latest after 31 s.
  Topology::Query Asked() {
    EXPECT_LE(topology->wake_at() - now, 40s);
    now = std::max(now, topology->wake_at());
    const auto query = topology->Ask(now);
    EXPECT_TRUE(query.has_value());
    return query.value_or(Topology::Query{});
  }
  std::unique_ptr<Topology> topology;
  base::BootTime now = At(0s);
};

// foo is in slot 12182, bar in 5061.
TEST(ClusterTopology, KnowsNothingUntilANodeHasSaid) {
  Cluster cluster;
  EXPECT_EQ(cluster.topology->Find("foo"), std::nullopt);
  EXPECT_THAT(cluster.Asked().words, ElementsAre("CLUSTER", "SLOTS"));
  EXPECT_TRUE(cluster.topology->OnAnswer(TwoNodes(8000), cluster.now));
  EXPECT_EQ(cluster.PortOf("foo"), 2);
  EXPECT_EQ(cluster.PortOf("bar"), 1);
  EXPECT_FALSE(cluster.topology->InUse(1)) << "a seed that has no slots";
}

TEST(ClusterTopology, AsksTheNextWhereOneDoesNotAnswer) {
  Cluster cluster;
  std::vector<uint32_t> asked;
  for (int i = 0; i < 4; ++i) {
    asked.push_back(cluster.Asked().server);
    cluster.topology->OnNoAnswer(cluster.now);
  }
  EXPECT_NE(asked[0], asked[1]);
  EXPECT_EQ(asked[0], asked[2]);
  EXPECT_GE(cluster.now - At(0s), 300ms) << "not at once";
  EXPECT_LE(cluster.now - At(0s), 450ms);
  cluster.Asked();
  EXPECT_FALSE(cluster.topology->OnAnswer(Reply("*0\r\n"), cluster.now))
      << "a node that has not joined";
  EXPECT_LE(cluster.topology->wake_at() - cluster.now, 150ms);
}

TEST(ClusterTopology, FollowsMovedAtOnceForItsSlotAndAsksForTheRest) {
  Cluster cluster;
  cluster.Asked();
  cluster.topology->OnAnswer(TwoNodes(8000), cluster.now);
  cluster.now += 5s;
  const auto from = cluster.topology->Find("foo");
  const auto server = cluster.topology->OnRedirect("MOVED 12182 h:3", *from, true);
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(cluster.topology->servers()[*server], Server(3));
  EXPECT_EQ(cluster.PortOf("foo"), 3);
  EXPECT_TRUE(cluster.topology->InUse(*server));
}

TEST(ClusterTopology, FindsNewServersHoweverManyThereHaveBeen) {
  Cluster cluster;
  cluster.Asked();
  cluster.topology->OnAnswer(TwoNodes(8000), cluster.now);
  for (uint16_t port = 100; port < 5000; ++port) {
    const uint32_t from = *cluster.topology->Find("foo");
    ASSERT_TRUE(cluster.topology->OnRedirect("MOVED 12182 h:" + std::to_string(port), from, true))
        << port;
    EXPECT_EQ(cluster.PortOf("foo"), port);
    EXPECT_FALSE(cluster.topology->Forget(*cluster.topology->Find("foo"))) << "it has the slot";
    const bool was_found = cluster.topology->servers()[from].port >= 100;
    EXPECT_TRUE(!was_found || cluster.topology->Forget(from));
  }
  EXPECT_LE(cluster.topology->servers().size(), 10u);
  EXPECT_FALSE(cluster.topology->Forget(1)) << "a seed, which is asked";
}

TEST(ClusterTopology, RemembersNothingOfAsk) {
  Cluster cluster;
  cluster.Asked();
  cluster.topology->OnAnswer(TwoNodes(8000), cluster.now);
  const auto server = cluster.topology->OnRedirect("ASK 12182 h:3", 0, false);
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(cluster.topology->servers()[*server], Server(3));
  EXPECT_EQ(cluster.PortOf("foo"), 2);
}

TEST(ClusterTopology, ARedirectWithoutAHostStaysAtTheHostThatWasAsked) {
  Cluster cluster;
  EXPECT_EQ(cluster.topology->servers()[*cluster.topology->OnRedirect("MOVED 1 :5", 0, true)],
            Server(5));
  EXPECT_EQ(cluster.topology->servers()[*cluster.topology->OnRedirect("MOVED 1 ::1:5", 0, true)],
            Server(5, "::1"));
  for (const std::string_view error :
       {"MOVED", "MOVED 1", "MOVED 16384 h:1", "MOVED 1 h", "MOVED 1 h:0", "MOVED x h:1"}) {
    EXPECT_EQ(cluster.topology->OnRedirect(error, 0, true), std::nullopt) << error;
  }
}

TEST(ClusterTopology, SuspicionsAskSoonButNotOften) {
  Cluster cluster;
  cluster.Asked();
  cluster.topology->OnAnswer(TwoNodes(8000), cluster.now);
  EXPECT_GE(cluster.topology->wake_at() - cluster.now, 30s) << "all is well";
  int questions = 0;
  for (base::Duration d{0}; d < 10s; d += 1ms) {
    cluster.topology->OnSuspicion(cluster.now + d);
    if (cluster.topology->Ask(cluster.now + d)) ++questions;
  }
  EXPECT_GE(questions, 60);
  EXPECT_LE(questions, 100);
}

TEST(ClusterTopology, AFailoverMovesTheSlots) {
  Cluster cluster;
  cluster.Asked();
  cluster.topology->OnAnswer(TwoNodes(8000), cluster.now);
  cluster.now += 5s;
  cluster.Asked();
  EXPECT_TRUE(cluster.topology->OnAnswer(TwoNodes(4000), cluster.now));
  EXPECT_EQ(cluster.PortOf("bar"), 2);
  EXPECT_FALSE(cluster.topology->OnAnswer(TwoNodes(4000), cluster.now)) << "nothing new";
}

struct Sentinels {
  Sentinels()
      : topology(MakeTopology({.topology = TopologyKind::kSentinel,
                               .servers = {Server(1), Server(2)},
                               .master_name = "main"},
                              7)) {}
  std::unique_ptr<Topology> topology;
};

TEST(SentinelTopology, AsksForTheMasterAndFollowsIt) {
  Sentinels sentinels;
  Topology& topology = *sentinels.topology;
  EXPECT_EQ(topology.Find("foo"), std::nullopt);
  const auto query = topology.Ask(At(0s));
  ASSERT_TRUE(query.has_value());
  EXPECT_THAT(query->words, ElementsAre("SENTINEL", "get-master-addr-by-name", "main"));
  EXPECT_TRUE(topology.IsSentinel(query->server));
  EXPECT_TRUE(topology.OnAnswer(Reply("*2\r\n$1\r\nh\r\n$1\r\n7\r\n"), At(0s)));
  const auto master = topology.Find("foo");
  ASSERT_TRUE(master.has_value());
  EXPECT_EQ(topology.servers()[*master], Server(7));
  EXPECT_FALSE(topology.IsSentinel(*master));
  EXPECT_EQ(topology.Ask(At(100ms)), std::nullopt);
  ASSERT_TRUE(topology.Ask(At(1200ms)).has_value()) << "every second";
  EXPECT_TRUE(topology.OnAnswer(Reply("*2\r\n$1\r\nh\r\n$1\r\n8\r\n"), At(1200ms)));
  EXPECT_EQ(topology.servers()[*topology.Find("foo")], Server(8));
}

TEST(SentinelTopology, AsksTheNextWhereOneDoesNotKnow) {
  Sentinels sentinels;
  Topology& topology = *sentinels.topology;
  EXPECT_EQ(topology.Ask(At(0s))->server, 0u);
  EXPECT_FALSE(topology.OnAnswer(Reply("*-1\r\n"), At(0s)));
  EXPECT_LE(topology.wake_at(), At(250ms));
  EXPECT_EQ(topology.Ask(At(250ms))->server, 1u);
  topology.OnNoAnswer(At(250ms));
  EXPECT_EQ(topology.Ask(At(500ms))->server, 0u);
}

// The first sentinel answers, but names a primary that is no longer one.
TEST(SentinelTopology, AsksAnotherWhereTheOneThatAnswersMisleads) {
  Sentinels sentinels;
  Topology& topology = *sentinels.topology;
  const wire::RespValue dead = Reply("*2\r\n$1\r\nh\r\n$1\r\n7\r\n");
  EXPECT_EQ(topology.Ask(At(0s))->server, 0u);
  EXPECT_TRUE(topology.OnAnswer(dead, At(0s)));
  topology.OnSuspicion(At(10ms));
  topology.OnSuspicion(At(20ms));
  EXPECT_EQ(topology.Ask(At(300ms))->server, 1u);
  EXPECT_TRUE(topology.OnAnswer(Reply("*2\r\n$1\r\nh\r\n$1\r\n8\r\n"), At(300ms)));
  EXPECT_EQ(topology.Ask(At(2s))->server, 1u) << "as long as nothing goes wrong";
}

TEST(Topology, ASingleServerOrARingIsNeverQueried) {
  for (const TopologyKind kind : {TopologyKind::kSingle, TopologyKind::kRing}) {
    const auto topology = MakeTopology({.topology = kind, .servers = {Server(1)}}, 7);
    EXPECT_THAT(topology->Find("foo"), Optional(0u));
    topology->OnSuspicion(At(0s));
    EXPECT_EQ(topology->Ask(At(1h)), std::nullopt);
    EXPECT_TRUE(topology->InUse(0));
  }
}

}  // namespace topology_test
}  // namespace headgate::store::redis
