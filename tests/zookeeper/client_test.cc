// The client against real servers.
#include "headgate/client/zookeeper/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/zookeeper/test_client.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace client_test {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(ZooKeeperClient, MakesReadsChangesAndDeletesNodes) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  ASSERT_TRUE(client.Connects());
  EXPECT_EQ(client.sessions, 1u);
  EXPECT_NE(client->session_id(), 0);
  ASSERT_TRUE(client.Create("/a", "one").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(client.Create("/a")));
  EXPECT_TRUE(absl::IsNotFound(client.Create("/b/c")));
  EXPECT_EQ(client.Get("/a")->data, "one");
  EXPECT_EQ(client.Set("/a", "two", 0)->version, 1);
  EXPECT_TRUE(absl::IsAborted(client.Set("/a", "three", 0).status()));
  const auto node = client.Get("/a");
  EXPECT_EQ(node->data, "two");
  EXPECT_GT(node->stat.changed_zxid, node->stat.created_zxid);
  ASSERT_TRUE(client.Create("/a/x").ok());
  ASSERT_TRUE(client.Create("/a/y").ok());
  EXPECT_THAT(client.List("/a")->names, UnorderedElementsAre("x", "y"));
  EXPECT_TRUE(absl::IsFailedPrecondition(client.Delete("/a")));
  EXPECT_TRUE(client.Delete("/a/x").ok());
  EXPECT_TRUE(client.Delete("/a/y").ok());
  EXPECT_TRUE(absl::IsAborted(client.Delete("/a", 7)));
  EXPECT_TRUE(client.Delete("/a", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(client.Get("/a").status()));
}

TEST(ZooKeeperClient, ReplacesANodeByANewOneOrLeavesIt) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  ASSERT_TRUE(client.Connects());
  ASSERT_TRUE(client.Create("/a", "one").ok());
  ASSERT_TRUE(client.Set("/a", "two").ok());
  const auto before = client.Get("/a");
  EXPECT_TRUE(absl::IsAborted(client.Replace("/a", "three", 0)));
  EXPECT_EQ(client.Get("/a")->data, "two");
  EXPECT_TRUE(client.Replace("/a", "three", 1).ok());
  const auto after = client.Get("/a");
  EXPECT_EQ(after->data, "three");
  EXPECT_EQ(after->stat.version, 0);
  EXPECT_GT(after->stat.created_zxid, before->stat.created_zxid);
  EXPECT_TRUE(absl::IsNotFound(client.Replace("/b", "x", 0)));
  const std::string most(1'048'500 - 4 - 64, 'x');
  EXPECT_TRUE(client.Replace("/a", most, 0).ok());
  EXPECT_EQ(client.Get("/a")->data, most);
  EXPECT_TRUE(absl::IsInvalidArgument(client.Replace("/a", most + "x", 0)));
  EXPECT_EQ(client.disconnects, 0u);
}

// Each reader has another server, and reads at once what was written before.
TEST(ZooKeeperClient, AReadBehindASyncSeesEveryEarlierWrite) {
  Ensemble ensemble;
  TestClient writer(ensemble.server(0).server());
  TestClient first(ensemble.server(1).server()), second(ensemble.server(2).server());
  ASSERT_TRUE(writer.Connects() && first.Connects() && second.Connects());
  ASSERT_TRUE(writer.Create("/a", "").ok());
  for (int i = 0; i < 200; ++i) {
    const std::string data = std::to_string(i);
    ASSERT_TRUE(writer.Set("/a", data).ok());
    for (TestClient* reader : {&first, &second}) {
      absl::Status synced = absl::UnknownError("");
      (*reader)->Sync("/a", [&](const absl::Status& status) { synced = status; });
      EXPECT_EQ(reader->Get("/a")->data, data);
      EXPECT_TRUE(synced.ok()) << "answered before the read";
    }
  }
}

TEST(ZooKeeperClient, MakesEveryMissingParent) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  ASSERT_TRUE(client.Connects());
  for (int round = 0; round < 2; ++round) {
    std::optional<absl::Status> status;
    client->CreateAll("/a/b/c", [&](absl::Status given) { status = std::move(given); });
    ASSERT_TRUE(client.Until([&] { return status.has_value(); }));
    EXPECT_TRUE(status->ok()) << *status;
  }
  EXPECT_TRUE(client.Get("/a/b/c").ok());
}

TEST(ZooKeeperClient, SendsNothingThatWouldBreakTheConnection) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  ASSERT_TRUE(client.Connects());
  for (const std::string path : {"", "a", "/a/", "/a//b", "/..", "/a\x01"})
    EXPECT_TRUE(absl::IsInvalidArgument(client.Create(path))) << path;
  const std::string most(1'048'500 - 2, 'x');
  EXPECT_TRUE(client.Create("/a", most).ok());
  EXPECT_EQ(client.Get("/a")->data, most);
  EXPECT_TRUE(absl::IsInvalidArgument(client.Set("/a", most + "x").status()));
  EXPECT_EQ(client.disconnects, 0u);
}

TEST(ZooKeeperClient, AWatchFiresOnceAndSurvivesAReconnect) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  TestClient other(server.server());
  ASSERT_TRUE(client.Connects() && other.Connects());
  ASSERT_TRUE(other.Create("/a").ok());
  ASSERT_TRUE(client.Get("/a", Watch::kYes).ok());
  ASSERT_TRUE(client.List("/a", Watch::kYes).ok());
  ASSERT_TRUE(other.Set("/a", "1").ok());
  ASSERT_TRUE(client.Until([&] { return !client.watched.empty(); }));
  ASSERT_TRUE(other.Set("/a", "2").ok());
  ASSERT_TRUE(other.Create("/a/x").ok());
  ASSERT_TRUE(client.Until([&] { return client.watched.size() == 2; }));
  EXPECT_THAT(client.watched, ElementsAre("/a", "/a"));

  ASSERT_TRUE(client.Get("/a", Watch::kYes).ok());
  server.Kill();
  ASSERT_TRUE(client.Until([&] { return client.disconnects == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(client.Get("/a").status()));
  server.Start();
  ASSERT_TRUE(client.Until([&] { return client.reconnects == 1; }));
  ASSERT_TRUE(other.Connects());
  ASSERT_TRUE(other.Set("/a", "3").ok());
  EXPECT_TRUE(client.Until([&] { return client.watched.size() == 3; }));
  EXPECT_EQ(client.sessions, 1u);
}

TEST(ZooKeeperClient, AnEphemeralNodeEndsWithItsSession) {
  ZooKeeperProcess server;
  TestClient client(server.server());
  TestClient other(server.server());
  ASSERT_TRUE(client.Connects() && other.Connects());
  ASSERT_TRUE(client.Create("/e", "x", CreateMode::kEphemeral).ok());
  EXPECT_EQ(other.Get("/e")->stat.owner, client->session_id());
  client.Leave();
  EXPECT_TRUE(absl::IsNotFound(other.Get("/e").status()));
}

TEST(ZooKeeperClient, ASessionThatExpiredIsReplaced) {
  ZooKeeperProcess server;
  TestClient client(server.server(), 400ms);
  TestClient other(server.server());
  ASSERT_TRUE(client.Connects() && other.Connects());
  const int64_t first = client->session_id();
  ASSERT_TRUE(client.Create("/e", "x", CreateMode::kEphemeral).ok());
  // The frozen server gets no heartbeats, so it ends the session when it continues.
  server.Freeze();
  ASSERT_TRUE(client.Until([&] { return client.disconnects == 1; }));
  const base::SystemClock clock;
  const base::BootTime frozen_until = clock.BootNow() + 1s;
  ASSERT_TRUE(client.Until([&] { return clock.BootNow() >= frozen_until; }));
  server.Thaw();
  ASSERT_TRUE(client.Until([&] { return client.sessions == 2; }));
  EXPECT_NE(client->session_id(), first);
  EXPECT_TRUE(other.Until([&] { return absl::IsNotFound(other.Get("/e").status()); }));
}

TEST(ZooKeeperClient, ACallWithoutAnAnswerEndsAndTheChangeIsNotKnown) {
  ZooKeeperProcess server;
  TestClient client(server.server(), 4s, 50ms);
  ASSERT_TRUE(client.Connects());
  server.Freeze();
  EXPECT_TRUE(absl::IsUnknown(client.Create("/a")));
  EXPECT_TRUE(absl::IsUnavailable(client.Get("/a").status()));
  server.Thaw();
  EXPECT_TRUE(client.Until([&] { return client.Get("/a").ok(); }));
}

TEST(ZooKeeperClient, EveryCallEndsWhenTheServerDies) {
  ZooKeeperProcess server;
  TestClient client(server.server(), 4s, 60s);
  ASSERT_TRUE(client.Connects());
  server.Freeze();
  uint32_t ended = 0;
  for (int i = 0; i < 1'000; ++i) {
    client->Set("/a", "x", -1, [&](const absl::StatusOr<client::zookeeper::NodeStat>& stat) {
      EXPECT_FALSE(stat.ok());
      ++ended;
    });
  }
  client->Leave([] {});
  server.Kill();
  EXPECT_TRUE(client.Until([&] { return ended == 1'000; }));
}

TEST(ZooKeeperClient, OnlyTheUserOfANodeMayUseIt) {
  ZooKeeperProcess server;
  TestClient owner("gate:secret@" + server.server());
  TestClient wrong("gate:guess@" + server.server());
  TestClient nobody(server.server());
  ASSERT_TRUE(owner.Connects() && wrong.Connects() && nobody.Connects());
  ASSERT_TRUE(owner.Create("/a", "x").ok());
  EXPECT_TRUE(owner.Set("/a", "y").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(wrong.Get("/a").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(nobody.Get("/a").status()));
}

TEST(ZooKeeperClient, ANameThatIsNotKnownIsAskedForAgain) {
  TestClient client("no-such-host.invalid:2181");
  EXPECT_TRUE(client.Until([&] { return !client.trouble.ok(); }));
  EXPECT_FALSE(client->connected());
}

TEST(ZooKeeperClient, TakesAnotherServerOfTheEnsemble) {
  Ensemble ensemble;
  TestClient client(ensemble.servers());
  ASSERT_TRUE(client.Connects());
  ASSERT_TRUE(client.Create("/a", "x").ok());
  for (size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.server(i).Kill();
    EXPECT_TRUE(client.Until([&] { return client.Set("/a", "y").ok(); })) << i;
    ensemble.server(i).Begin();
    ASSERT_TRUE(client.Until([&] { return ensemble.server(i).IsServing(); }));
  }
  EXPECT_EQ(client.sessions, 1u);
}

}  // namespace client_test
}  // namespace headgate::zookeeper_test
