// The client against a real cluster of three primaries and three replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "headgate/store/redis/key_slot.h"
#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_cluster.h"

namespace headgate::redis_test {
namespace cluster_test {

using store::redis::KeySlot;
using store::redis::RedisOptions;
using ::testing::HasSubstr;

// All tests of this file share one cluster, because forming one takes seconds.
class Cluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new RedisCluster(RedisCluster::Replicas::kOneEach); }
  // On a busy machine, other nodes may have marked a node as failed.
  void SetUp() override { cluster_->WaitUntilWell(); }
  static void TearDownTestSuite() { delete cluster_; }

  static RedisProcess& Node(size_t i) { return cluster_->Node(i); }
  static std::string IdOf(size_t i) { return cluster_->IdOf(i); }
  static void Wait(const std::function<bool()>& condition) { RedisCluster::Wait(condition); }
  static RedisOptions Options(size_t seed) {
    RedisOptions options = TestClient::Single(Node(seed).port());
    options.topology = store::redis::TopologyKind::kCluster;
    options.timeout = 5s;
    return options;
  }
  // A key in a slot that moves between the two primaries.
  static std::string KeyIn(uint16_t first, uint16_t last, std::string_view prefix = "k") {
    for (int i = 0;; ++i) {
      std::string key = fmt::format("{}{}", prefix, i);
      if (KeySlot(key) >= first && KeySlot(key) <= last) return key;
    }
  }

 private:
  static inline RedisCluster* cluster_ = nullptr;
};

TEST_F(Cluster, FindsThePrimaryOfEachKeyFromAnyNode) {
  for (const size_t seed : {size_t{0}, size_t{4}}) {
    TestClient test(Options(seed));
    for (int i = 0; i < 60; ++i)
      EXPECT_EQ(test.Call(AddScript(), fmt::format("s{}k{}", seed, i), {"1"}), "1");
    EXPECT_EQ(test.client->ReadCounters().redirects, 0u);
    EXPECT_EQ(test.HistoryChanges(), 0u);
  }
}

TEST_F(Cluster, FollowsASlotDuringAndAfterItsMove) {
  TestClient test(Options(0));
  const std::string key = KeyIn(0, 5000, "moving");
  const uint16_t slot = KeySlot(key);
  const std::string fresh = fmt::format("new{{{}}}", key);
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "1") << test.last_status;
  EXPECT_EQ(Node(1).Ask(fmt::format("CLUSTER SETSLOT {} IMPORTING {}", slot, IdOf(0))), "+OK\r\n");
  EXPECT_EQ(Node(0).Ask(fmt::format("CLUSTER SETSLOT {} MIGRATING {}", slot, IdOf(1))), "+OK\r\n");
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "2") << "the key is still on the old server";
  EXPECT_EQ(test.Call(AddScript(), fresh, {"1"}), "1") << "ASK";
  EXPECT_EQ(test.Call(AddScript(), fresh, {"1"}), "2");
  EXPECT_EQ(test.client->ReadCounters().redirects, 2u);
  EXPECT_THAT(Node(0).Ask(fmt::format("MIGRATE 127.0.0.1 {} {} 0 5000", Node(1).port(), key)),
              HasSubstr("OK"));
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "3");
  EXPECT_EQ(test.client->ReadCounters().redirects, 3u);
  for (const size_t node : {size_t{1}, size_t{0}, size_t{2}}) {
    EXPECT_EQ(Node(node).Ask(fmt::format("CLUSTER SETSLOT {} NODE {}", slot, IdOf(1))), "+OK\r\n");
  }
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "4") << "MOVED";
  const uint64_t redirects = test.client->ReadCounters().redirects;
  for (int i = 5; i < 20; ++i) EXPECT_EQ(test.Call(AddScript(), key, {"1"}), std::to_string(i));
  EXPECT_EQ(test.client->ReadCounters().redirects, redirects)
      << "the client remembers the new server";
  EXPECT_EQ(test.HistoryChanges(), 0u) << "the histories of both servers continue";
}

TEST_F(Cluster, FollowsAPlannedFailoverWithoutLosingCalls) {
  TestClient test(Options(2));
  const std::string key = KeyIn(10924, 16383, "planned");
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "1") << test.last_status;
  EXPECT_EQ(Node(5).Ask("CLUSTER FAILOVER"), "+OK\r\n");
  int added = 1;
  int failed = 0;
  ASSERT_TRUE(test.Until([&] {
    if (test.Call(AddScript(), key, {"1"}) == std::to_string(added + 1)) {
      ++added;
    } else {
      ++failed;
    }
    return test.HistoryChanges() > 0 && test.Call(AddScript(), key, {"0"}) == std::to_string(added);
  }));
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(test.client->LearningUntil(key).has_value());
}

// The final values contain all answered calls and no failed ones; calls without an answer may have
// been executed.
TEST_F(Cluster, ReportsEachCallCorrectlyDuringAFailoverUnderLoad) {
  TestClient test(Options(2));
  const std::string key = KeyIn(0, 5461, "books");
  EXPECT_EQ(test.Call(AddScript(), key, {"1"}), "1") << test.last_status;
  int done = 1, perhaps = 0, not_done = 0, under_way = 0;
  const std::function<void()> start = [&] {
    ++under_way;
    const std::string_view argument = "1";
    test.client->Call(
        {.script = &AddScript(), .key = key, .arguments = {&argument, 1}}, {},
        [&](const store::redis::PendingCall::Outcome& reply) {
          --under_way;
          if (reply.ok()) {
            ++done;
          } else if (absl::IsAborted(reply.status()) || absl::IsDeadlineExceeded(reply.status())) {
            ++perhaps;
          } else {
            ++not_done;
          }
        });
  };
  const auto keep_going = [&](const std::function<bool()>& enough) {
    return test.Until([&] {
      while (under_way < 100) start();
      return enough();
    });
  };
  EXPECT_TRUE(keep_going([&] { return done > 2000; }));
  Wait([&] { return Node(3).Ask("CLUSTER FAILOVER") == "+OK\r\n"; });
  EXPECT_TRUE(keep_going([&] { return test.HistoryChanges() > 0; }));
  const int then = done;
  EXPECT_TRUE(keep_going([&] { return done > then + 2000; }));
  EXPECT_TRUE(test.Until([&] { return under_way == 0; }));
  const std::string answer = test.Call(AddScript(), key, {"0"});
  const int counted = std::stoi(answer);
  EXPECT_GE(counted, done);
  EXPECT_LE(counted, done + perhaps);
  EXPECT_LE(perhaps + not_done, 200) << perhaps << " perhaps, " << not_done << " not";
}

TEST_F(Cluster, WorksAfterAPrimaryHasDied) {
  TestClient test(Options(1));
  const std::string key = KeyIn(5463, 10000, "dying");
  const std::string other = KeyIn(0, 5461, "other");
  ASSERT_EQ(test.Call(AddScript(), key, {"1"}), "1") << test.last_status;
  Wait([&] {
    return Node(4).Ask("INFO replication").find("master_link_status:up") != std::string::npos;
  });
  Node(1).Kill();
  const base::BootTime begin = test.clock.BootNow();
  int unaffected = 0;
  EXPECT_TRUE(test.Until([&] {
    if (test.Call(AddScript(), other, {"1"}, 200ms) == std::to_string(unaffected + 1)) ++unaffected;
    return test.Call(AddScript(), key, {"0"}, 200ms) == "1";
  }));
  EXPECT_LT(test.clock.BootNow() - begin, 10s);
  EXPECT_GT(unaffected, 10);
  EXPECT_GT(test.HistoryChanges(), 0u);
}

}  // namespace cluster_test
}  // namespace headgate::redis_test
