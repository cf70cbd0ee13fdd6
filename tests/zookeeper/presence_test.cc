// The nodes of instances, against real servers.
#include "headgate/client/zookeeper/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/zookeeper/test_client.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace presence_test {

using client::zookeeper::Presence;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

class Instance {
 public:
  Instance(const ZooKeeperProcess& server, const std::string& name,
           base::Duration session_timeout = 4s, base::Duration write_pause = 10ms)
      : client(server.server(), session_timeout),
        presence(*client, client.loop(),
                 {.directory = "/r/instances",
                  .name = name,
                  .data = client::zookeeper::PresenceData({.version = "1.2"}),
                  .pause = 10ms,
                  .settle = 300ms,
                  .write_pause = write_pause,
                  .on_error = [this](const std::string& error) { errors.push_back(error); }}) {
    client.on_connected = [this](bool is_new) { presence.OnConnected(is_new); };
    client.on_watch = [this](const client::zookeeper::WatchEvent& event) {
      presence.OnWatch(event);
    };
  }

  bool Counts(uint32_t count) {
    return client.Until([&] { return presence.instances() == count; });
  }
  std::vector<std::string> All() {
    const auto children = client.List("/r/instances");
    return children.ok() ? children->names : std::vector<std::string>();
  }

  TestClient client;
  std::vector<std::string> errors;
  Presence presence;
};

TEST(Presence, CountsTheInstances) {
  ZooKeeperProcess server;
  Instance first(server, "one");
  ASSERT_TRUE(first.client.Until([&] { return first.All().size() == 1; }));
  EXPECT_EQ(first.presence.instances(), 1u);
  auto second = std::make_unique<Instance>(server, "two");
  ASSERT_TRUE(second->Counts(2));
  ASSERT_TRUE(first.Counts(2));
  EXPECT_THAT(first.All(), UnorderedElementsAre("one", "two"));
  const auto node = first.client.Get("/r/instances/two");
  EXPECT_EQ(node->stat.owner, second->client->session_id());
  EXPECT_THAT(
      node->data,
      MatchesRegex("\\{\"host\": \"[^\"]+\", \"version\": \"1.2\", \"started\": "
                   "\"1970-01-01T00:00:00Z\", \"rules_generation\": 0, \"rules_fingerprint\": "
                   "\"\"\\}"));
  bool left = false;
  second->presence.Leave([&] { left = true; });
  ASSERT_TRUE(second->client.Until([&] { return left; }));
  ASSERT_TRUE(first.Counts(1));
  EXPECT_THAT(first.errors, ::testing::IsEmpty());
}

// This clock is five seconds ahead of that of the server, which runs on the same machine.
TEST(Presence, ComparesItsClockWithTheLeaders) {
  ZooKeeperProcess server;
  TestClient client(server.server(), 4s);
  base::SystemClock system;
  std::vector<base::Duration> offsets;
  base::Duration uncertainty_max{0};
  Presence presence(
      *client, client.loop(),
      {.directory = "/r/instances",
       .name = "one",
       .data = "{}",
       .write_pause = 10ms,
       .clock = [&] { return base::Instant::FromNanos(system.WallNow().ns + 5'000'000'000); },
       .clock_pause = 20ms,
       .on_offset =
           [&](base::Duration offset, base::Duration uncertainty) {
             offsets.push_back(offset);
             uncertainty_max = std::max(uncertainty_max, uncertainty);
             EXPECT_LE(std::chrono::abs(offset - 5s), uncertainty);
           }});
  client.on_connected = [&](bool is_new) { presence.OnConnected(is_new); };
  ASSERT_TRUE(client.Until([&] { return offsets.size() >= 3; }));
  EXPECT_GT(uncertainty_max, base::Duration(0));
}

TEST(Presence, WritesTheLastDescription) {
  ZooKeeperProcess server;
  Instance instance(server, "one");
  instance.presence.Describe("before the node");
  const auto shows = [&](std::string_view data) {
    return instance.client.Until([&] {
      const auto node = instance.client.Get("/r/instances/one");
      return node.ok() && node->data == data;
    });
  };
  EXPECT_TRUE(shows("before the node"));
  for (int i = 0; i <= 100; ++i) instance.presence.Describe(fmt::format("{}", i));
  EXPECT_TRUE(shows("100"));
  // It survives a deletion by somebody.
  ASSERT_TRUE(instance.client.Delete("/r/instances/one").ok());
  EXPECT_TRUE(shows("100"));
  EXPECT_THAT(instance.errors, ::testing::IsEmpty());
}

TEST(Presence, WritesItsDataNotMoreOftenThanThePause) {
  ZooKeeperProcess server;
  Instance instance(server, "one", 4s, 1h);
  ASSERT_TRUE(instance.client.Until([&] { return instance.All().size() == 1; }));
  for (int i = 0; i <= 100; ++i) instance.presence.Describe(fmt::format("{}", i));
  EXPECT_FALSE(instance.client.Until([] { return false; }, 300ms));
  EXPECT_EQ(instance.client.Get("/r/instances/one")->stat.version, 0);
}

TEST(Presence, MakesItsNodeAgainInANewSession) {
  ZooKeeperProcess server;
  Instance instance(server, "one", 400ms);
  ASSERT_TRUE(instance.client.Until([&] { return instance.All().size() == 1; }));
  server.Freeze();
  ASSERT_TRUE(instance.client.Until([&] { return instance.client.disconnects == 1; }));
  // The server notices the end of the session at its next check.
  EXPECT_FALSE(instance.client.Until([] { return false; }, 1s));
  server.Thaw();
  ASSERT_TRUE(instance.client.Until([&] { return instance.client.sessions == 2; }));
  EXPECT_TRUE(instance.client.Until([&] {
    const auto node = instance.client.Get("/r/instances/one");
    return node.ok() && node->stat.owner == instance.client->session_id();
  }));
  EXPECT_EQ(instance.All().size(), 1u);
}

TEST(Presence, ReplacesANodeOfAnEarlierSession) {
  ZooKeeperProcess server;
  TestClient earlier(server.server());
  ASSERT_TRUE(earlier.Connects());
  ASSERT_TRUE(earlier.Create("/r").ok());
  ASSERT_TRUE(earlier.Create("/r/instances").ok());
  ASSERT_TRUE(earlier.Create("/r/instances/one", "", CreateMode::kEphemeral).ok());
  Instance instance(server, "one");
  ASSERT_TRUE(instance.client.Connects());
  EXPECT_TRUE(instance.client.Until([&] {
    const auto node = instance.client.Get("/r/instances/one");
    return node.ok() && node->stat.owner == instance.client->session_id();
  }));
  EXPECT_EQ(instance.All().size(), 1u);
}

TEST(Presence, MakesANodeAgainThatSomebodyDeleted) {
  ZooKeeperProcess server;
  Instance instance(server, "one");
  TestClient other(server.server());
  ASSERT_TRUE(other.Connects());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(instance.client.Until([&] { return instance.All().size() == 1; }));
    ASSERT_TRUE(other.Delete("/r/instances/one").ok());
  }
  ASSERT_TRUE(instance.client.Until([&] { return instance.All().size() == 1; }));
}

TEST(Presence, SaysThatItIsRefused) {
  ZooKeeperProcess server;
  TestClient owner("gate:secret@" + server.server());
  ASSERT_TRUE(owner.Connects());
  ASSERT_TRUE(owner.Create("/r").ok());
  ASSERT_TRUE(owner.Create("/r/instances").ok());
  Instance instance(server, "one");
  EXPECT_TRUE(instance.client.Until([&] { return instance.presence.errors() >= 2; }));
  EXPECT_EQ(instance.errors.size(), 1u) << "each change once";
  EXPECT_EQ(instance.presence.instances(), 1u);
}

}  // namespace presence_test
}  // namespace headgate::zookeeper_test
