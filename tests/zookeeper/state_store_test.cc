// Values with versions, and their removal, on a real ZooKeeper.
#include "headgate/store/zookeeper/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/cas/envelope.h"
#include "headgate/store/zookeeper/sweeper.h"
#include "tests/zookeeper/test_client.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace state_store_test {

using store::cas::PutRequest;
using store::cas::Version;
using store::cas::Versioned;
using store::zookeeper::StateStore;
using store::zookeeper::StateStoreOptions;
using store::zookeeper::Sweeper;
using store::zookeeper::SweeperOptions;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TestStore {
 public:
  explicit TestStore(const ZooKeeperProcess& server, StateStoreOptions options = {})
      : client(server.server()), store(*client, client.loop(), With(std::move(options)), counters) {
    client.on_connected = [this](bool /*is_new*/) { store.OnConnected(); };
    EXPECT_TRUE(client.Connects());
  }

  absl::StatusOr<std::optional<Versioned>> Get(std::string_view name, base::Duration time = 10s) {
    std::optional<absl::StatusOr<std::optional<Versioned>>> answer;
    store.Get(name, client.loop().Now() + time, [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(client.Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }
  absl::StatusOr<Version> Put(std::string_view name, std::optional<std::string_view> bytes,
                              std::optional<Version> expected, base::Duration time = 10s) {
    std::optional<absl::StatusOr<Version>> answer;
    store.Put({.name = name,
               .bytes = bytes,
               .expected = expected,
               .deadline = client.loop().Now() + time},
              [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(client.Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }

  std::vector<bool> opened;
  std::vector<std::string> alarms;
  store::LoopStoreCounters counters;
  TestClient client;
  StateStore store;

 private:
  StateStoreOptions With(StateStoreOptions options) {
    options.root = "/r";
    options.on_breaker = [this](bool open) { opened.push_back(open); };
    options.on_alarm = [this](const std::string& error) { alarms.push_back(error); };
    return options;
  }
};

TEST(StateStore, ReplacesAValueIfItHasNotChanged) {
  ZooKeeperProcess server;
  TestStore store(server), other(server);
  EXPECT_EQ(*store.Get("k"), std::nullopt);
  const auto first = store.Put("k", "one", std::nullopt);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*other.Get("k"))->bytes, "one");
  EXPECT_EQ((*other.Get("k"))->version, *first);
  EXPECT_TRUE(absl::IsAborted(other.Put("k", "two", std::nullopt).status()));
  const auto second = other.Put("k", "two", *first);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(*second, *first);
  EXPECT_TRUE(absl::IsAborted(store.Put("k", "three", *first).status()));
  EXPECT_TRUE(absl::IsAborted(store.Put("k", std::nullopt, *first).status()));
  EXPECT_TRUE(store.Put("k", std::nullopt, *second).ok());
  EXPECT_EQ(*other.Get("k"), std::nullopt);
  EXPECT_TRUE(absl::IsAborted(other.Put("k", "x", *second).status()));
  EXPECT_TRUE(absl::IsAborted(other.Put("k", std::nullopt, *second).status()));
  // A value that is created again gets another version, although ZooKeeper's own version starts
  // again at 0.
  const auto again = store.Put("k", "one", std::nullopt);
  EXPECT_NE(*again, *first);
  EXPECT_THAT(store.alarms, IsEmpty());
}

TEST(StateStore, RefusesWhatIsTooLarge) {
  ZooKeeperProcess server;
  TestStore store(server);
  const std::string large(1 << 20, 'x');
  EXPECT_TRUE(absl::IsOutOfRange(store.Put("k", large, std::nullopt).status()));
  const auto made = store.Put("k", "x", std::nullopt);
  EXPECT_TRUE(absl::IsOutOfRange(store.Put("k", large, *made).status()));
  EXPECT_EQ((*store.Get("k"))->bytes, "x");
  EXPECT_EQ(store.client.disconnects, 0u);
}

TEST(StateStore, RenewsANodeBeforeItsVersionsWrap) {
  ZooKeeperProcess server;
  TestStore store(server, {.version_max = 3});
  Version version = *store.Put("k", "0", std::nullopt);
  for (int i = 1; i < 20; ++i) {
    const Version before = version;
    const auto put = store.Put("k", std::to_string(i), version);
    ASSERT_TRUE(put.ok()) << put.status();
    version = *put;
    EXPECT_LE(store::zookeeper::NodeVersionOf(version), 3);
    EXPECT_TRUE(absl::IsAborted(store.Put("k", "stale", before).status()));
    EXPECT_EQ((*store.Get("k"))->bytes, std::to_string(i));
    EXPECT_EQ((*store.Get("k"))->version, version);
  }
}

TEST(StateStore, EndsEachCallInTimeAndOpensItsBreaker) {
  ZooKeeperProcess server;
  TestStore store(server, {.breaker = {.failures_in_row = 3, .no_progress = 50ms}});
  const Version version = *store.Put("k", "one", std::nullopt);
  server.Freeze();
  for (int i = 0; store.opened.empty(); ++i) {
    const base::BootTime began = store.client.loop().Now();
    const absl::Status status =
        i % 2 == 0 ? store.Get("k", 30ms).status() : store.Put("k", "two", version, 30ms).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_LT(store.client.loop().Now() - began, 1s);
    ASSERT_LT(i, 100);
  }
  EXPECT_THAT(store.opened, ElementsAre(true));
  EXPECT_TRUE(absl::IsUnavailable(store.Get("k").status()));
  EXPECT_EQ(store.counters.breakers_open.value(), 1u);
  EXPECT_GE(store.counters.calls_timed_out.value(), 3u);
  server.Thaw();
  // The store notices without a request that the server answers again.
  ASSERT_TRUE(store.client.Until([&] { return store.opened.size() == 2; }));
  EXPECT_THAT(store.opened, ElementsAre(true, false));
  EXPECT_EQ(store.counters.breakers_open.value(), 0u);
  EXPECT_TRUE(store.Get("k").ok());
}

TEST(StateStore, RefusesCallsBeyondItsBound) {
  ZooKeeperProcess server;
  TestStore store(server, {.in_flight_max = 2});
  int failed = 0;
  int ended = 0;
  for (int i = 0; i < 5; ++i) {
    store.store.Get("k", store.client.loop().Now() + 10s, [&](const auto& answer) {
      ++ended;
      failed += absl::IsResourceExhausted(answer.status());
    });
  }
  EXPECT_TRUE(store.client.Until([&] { return ended == 5; }));
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(store.counters.calls_refused.value(), 3u);
}

TEST(StateStore, IsUnavailableWithoutAConnection) {
  ZooKeeperProcess server;
  TestStore store(server);
  server.Kill();
  ASSERT_TRUE(store.client.Until([&] { return store.client.disconnects == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(store.Get("k").status()));
  EXPECT_TRUE(absl::IsUnavailable(store.Put("k", "x", std::nullopt).status()));
}

std::string ValueThatExpires(base::Instant at) {
  std::string bytes;
  store::cas::AppendEnvelope({.generation = 1, .expires_at = at, .bucket = "x"}, bytes);
  return bytes;
}

class TestSweeper {
 public:
  TestSweeper(const ZooKeeperProcess& server, base::Duration session_timeout = 4s)
      : client(server.server(), session_timeout),
        sweeper(
            *client, client.loop(), decisions,
            SweeperOptions{.root = "/r", .instance = "one", .pause = 100ms, .lock_pause = 100ms}) {
    client.on_connected = [this](bool is_new) { sweeper.OnConnected(is_new); };
  }
  bool Passes(uint64_t more) {
    const uint64_t passes = sweeper.counters().passes.value() + more;
    return client.Until([&] { return sweeper.counters().passes.value() >= passes; }, 60s);
  }

  base::SystemClock clock;
  base::DisciplinedClock decisions{clock};
  TestClient client;
  Sweeper sweeper;
};

TEST(Sweeper, DeletesOnlyWhatNobodyHasNeededForLong) {
  ZooKeeperProcess server;
  TestStore store(server);
  TestSweeper sweeper(server);
  const base::Instant now = sweeper.decisions.Now();
  ASSERT_TRUE(store.Put("idle", ValueThatExpires(now - 121s), std::nullopt).ok());
  ASSERT_TRUE(store.Put("recent", ValueThatExpires(now - 60s), std::nullopt).ok());
  ASSERT_TRUE(store.Put("in use", ValueThatExpires(now + 60s), std::nullopt).ok());
  ASSERT_TRUE(store.Put("foreign", "hello", std::nullopt).ok());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(
        store.Put("old" + std::to_string(i), ValueThatExpires(now - 1h), std::nullopt).ok());
  }
  ASSERT_TRUE(sweeper.Passes(1));
  EXPECT_EQ(*store.Get("idle"), std::nullopt);
  EXPECT_EQ(*store.Get("old7"), std::nullopt);
  EXPECT_NE(*store.Get("recent"), std::nullopt);
  EXPECT_NE(*store.Get("in use"), std::nullopt);
  EXPECT_NE(*store.Get("foreign"), std::nullopt);
  EXPECT_EQ(sweeper.sweeper.counters().removed.value(), 41u);
  EXPECT_EQ(sweeper.sweeper.counters().looked.value(), 44u);
  EXPECT_EQ(sweeper.sweeper.counters().foreign.value(), 1u);
}

TEST(Sweeper, IsOneAtATime) {
  ZooKeeperProcess server;
  TestStore store(server);
  TestSweeper first(server), second(server);
  ASSERT_TRUE(first.Passes(1));
  EXPECT_FALSE(second.client.Until([] { return false; }, 500ms));
  EXPECT_EQ(second.sweeper.counters().passes.value(), 0u);
  EXPECT_EQ(second.sweeper.counters().looked.value(), 0u);
  first.client.Leave();
  ASSERT_TRUE(store.Put("old", ValueThatExpires(second.decisions.Now() - 1h), std::nullopt).ok());
  ASSERT_TRUE(second.Passes(1));
  EXPECT_EQ(second.sweeper.counters().removed.value(), 1u);
}

}  // namespace state_store_test
}  // namespace headgate::zookeeper_test
