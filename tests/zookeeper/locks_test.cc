// The locks of keys on a real ZooKeeper.
#include "headgate/store/zookeeper/locks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zookeeper/test_client.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace locks_test {

using store::zookeeper::Locks;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Sessions with locks, on one event loop, and a client that reads their nodes.
class LocksTest : public ::testing::Test {
 protected:
  struct Instance {
    Instance(LocksTest& test, uint64_t seed)
        : client({.servers =
                      client::zookeeper::ParsePlace("zk://" + test.server.server(), "/")->servers,
                  .session_timeout = 1s,
                  .call_timeout = 500ms},
                 test.loop,
                 {.on_connected = [this](bool is_new) { locks.OnConnected(is_new); },
                  .on_disconnected = [this] { ++disconnects; },
                  .on_watch = [this](const auto& event) { locks.OnWatch(event); },
                  .on_trouble = {}}),
          locks(client, test.loop, {.root = "/r", .seed = seed}) {}

    void Take(std::string_view key = "k") {
      locks.Take(key, [this](const absl::StatusOr<uint64_t>& fence) {
        fence.ok() ? fences.push_back(*fence) : failures.push_back(fence.status());
      });
    }

    Client client;
    Locks locks;
    std::vector<uint64_t> fences;
    std::vector<absl::Status> failures;
    int disconnects = 0;
  };

  LocksTest() {
    for (uint64_t i = 0; i < 3; ++i) instances.push_back(std::make_unique<Instance>(*this, i + 1));
    for (const auto& instance : instances)
      EXPECT_TRUE(Until([&] { return instance->client.connected(); }));
    EXPECT_TRUE(reader.Connects());
  }

  Instance& a() { return *instances[0]; }
  Instance& b() { return *instances[1]; }
  Instance& c() { return *instances[2]; }
  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 20s); }
  // The number of nodes in the queue of "k".
  size_t Nodes() {
    // The reader's loop runs only here, so the reader may have lost its session.
    EXPECT_TRUE(reader.Connects());
    const auto list = reader.List("/r/locks/k");
    return list.ok() ? list->names.size() : 0;
  }
  bool UntilNodes(size_t count) {
    return Until([&] { return Nodes() == count; });
  }

  ZooKeeperProcess server;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  std::vector<std::unique_ptr<Instance>> instances;
  TestClient reader{server.server()};
};

TEST_F(LocksTest, AreHeldInTheOrderOfTheQueueWithRisingFences) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  b().Take();
  ASSERT_TRUE(UntilNodes(2));
  c().Take();
  ASSERT_TRUE(UntilNodes(3));
  EXPECT_THAT(b().fences, IsEmpty());
  a().locks.Release("k");
  ASSERT_TRUE(Until([&] { return b().fences.size() == 1; }));
  EXPECT_THAT(c().fences, IsEmpty());
  a().Take();
  b().locks.Release("k");
  ASSERT_TRUE(Until([&] { return c().fences.size() == 1; }));
  c().locks.Release("k");
  ASSERT_TRUE(Until([&] { return a().fences.size() == 2; }));
  EXPECT_LT(a().fences[0], b().fences[0]);
  EXPECT_LT(b().fences[0], c().fences[0]);
  EXPECT_LT(c().fences[0], a().fences[1]);
  a().locks.Release("k");
  EXPECT_TRUE(Until([&] { return a().locks.places() == 0; }));
  EXPECT_EQ(Nodes(), 0u);
}

TEST_F(LocksTest, OneThatGivesUpLeavesNoNodeAndTheOthersTheirOrder) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  b().Take();
  ASSERT_TRUE(UntilNodes(2));
  c().Take();
  ASSERT_TRUE(UntilNodes(3));
  b().locks.Release("k");
  EXPECT_TRUE(UntilNodes(2));
  EXPECT_THAT(c().fences, IsEmpty());
  a().locks.Release("k");
  EXPECT_TRUE(Until([&] { return c().fences.size() == 1; }));
  EXPECT_THAT(b().fences, IsEmpty());
}

TEST_F(LocksTest, OneThatGivesUpAtOnceLeavesNoNode) {
  b().Take();
  b().locks.Release("k");
  EXPECT_TRUE(Until([&] { return b().locks.places() == 0; }));
  EXPECT_EQ(Nodes(), 0u);
  EXPECT_THAT(b().fences, IsEmpty());
}

// The ensemble deletes an empty queue only if it has had a node, so a session that gives up must
// not leave a queue that never had one.
TEST_F(LocksTest, OneThatGivesUpAtAnyTurnLeavesNoUnusedQueue) {
  for (int turns_before = 0; turns_before < 12; ++turns_before) {
    const std::string key = "k" + std::to_string(turns_before);
    b().Take(key);
    int turns = 0;
    (void)loop.RunUntil([&] { return turns++ >= turns_before; }, 100ms);
    b().locks.Release(key);
    EXPECT_TRUE(Until([&] { return b().locks.places() == 0; }));
    EXPECT_TRUE(Until([&] {
      const auto queue = reader.Get("/r/locks/" + key);
      return !queue.ok() || queue->stat.children_zxid != queue->stat.created_zxid;
    })) << turns_before;
  }
}

TEST_F(LocksTest, AreIndependentForEachKey) {
  a().Take("k");
  b().Take("other");
  EXPECT_TRUE(Until([&] { return a().fences.size() + b().fences.size() == 2; }));
}

TEST_F(LocksTest, AreNotWaitedForWithoutAConnection) {
  server.Kill();
  ASSERT_TRUE(Until([&] { return a().disconnects > 0; }));
  a().Take();
  ASSERT_EQ(a().failures.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(a().failures[0]));
  EXPECT_EQ(a().locks.places(), 0u);
}

TEST_F(LocksTest, TheNodeOfOneThatGaveUpWithoutTheServerGoesWhenItIsBack) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  b().Take();
  ASSERT_TRUE(UntilNodes(2));
  server.Kill();
  ASSERT_TRUE(Until([&] { return b().disconnects > 0 && a().disconnects > 0; }));
  b().locks.Release("k");
  a().locks.Release("k");
  c().failures.clear();
  server.Start();
  EXPECT_TRUE(Until([&] { return a().locks.places() + b().locks.places() == 0; }));
  // A session that was replaced meanwhile takes its node with it.
  EXPECT_TRUE(UntilNodes(0));
}

TEST_F(LocksTest, TheNodeOfOneThatGaveUpBeforeTheAnswerGoesToo) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  server.Freeze();
  b().Take();  // its creation arrives, and is answered too late
  ASSERT_TRUE(Until([&] { return b().disconnects > 0; }));
  b().locks.Release("k");
  server.Thaw();
  EXPECT_TRUE(Until([&] { return b().locks.places() == 0; }));
  a().locks.Release("k");
  EXPECT_TRUE(Until([&] { return a().locks.places() == 0; }));
  EXPECT_TRUE(UntilNodes(0));
  EXPECT_THAT(b().fences, IsEmpty());
}

TEST_F(LocksTest, AreLostWithTheSessionAndTheNextOneGoesOn) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  b().Take();
  ASSERT_TRUE(UntilNodes(2));
  // Both sessions end: nobody is there to keep them.
  server.Kill();
  ASSERT_TRUE(Until([&] { return a().disconnects > 0 && b().disconnects > 0; }));
  bool over = false;
  net::Timer timer(loop, [&] { over = true; });
  timer.SetAfter(2s);  // longer than a session and a third
  ASSERT_TRUE(Until([&] { return over; }));
  server.Start();
  EXPECT_TRUE(Until([&] { return a().failures.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(a().failures[0]));
  EXPECT_TRUE(Until([&] { return b().fences.size() == 1; }));
  EXPECT_GT(b().fences[0], a().fences[0]);
  EXPECT_TRUE(UntilNodes(1));
}

// The server carries the creation out after the client has given the session up.
TEST_F(LocksTest, ASessionThatEndsBetweenTheCreationAndItsAnswerLeavesNoNode) {
  server.Freeze();
  a().Take();
  b().Take();
  bool over = false;
  net::Timer timer(loop, [&] { over = true; });
  timer.SetAfter(2s);  // longer than a session and a third
  ASSERT_TRUE(Until([&] { return over; }));
  a().locks.Release("k");
  server.Thaw();
  // A place that was not released is taken again in the new session.
  EXPECT_TRUE(Until([&] { return b().fences.size() == 1; }));
  EXPECT_TRUE(Until([&] { return a().locks.places() == 0; }));
  EXPECT_THAT(a().fences, IsEmpty());
  EXPECT_TRUE(UntilNodes(1));
  b().locks.Release("k");
  EXPECT_TRUE(UntilNodes(0));
}

TEST_F(LocksTest, ANodeThatSomebodyHasDeletedIsMadeAgain) {
  a().Take();
  ASSERT_TRUE(Until([&] { return a().fences.size() == 1; }));
  const auto first = reader.List("/r/locks/k");
  ASSERT_EQ(first->names.size(), 1u);
  b().Take();
  ASSERT_TRUE(UntilNodes(2));
  const auto both = reader.List("/r/locks/k");
  for (const std::string& name : both->names) {
    if (name == first->names[0]) continue;
    EXPECT_TRUE(reader.Delete("/r/locks/k/" + name).ok());
  }
  a().locks.Release("k");
  EXPECT_TRUE(Until([&] { return b().fences.size() == 1; }));
}

}  // namespace locks_test
}  // namespace headgate::zookeeper_test
