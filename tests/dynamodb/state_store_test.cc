// Values with versions on a real server.
#include "headgate/store/dynamodb/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/dynamodb/dynalite_process.h"

namespace headgate::dynamodb_test {
namespace state_store_test {

using namespace std::chrono_literals;
using store::cas::Version;
using store::cas::Versioned;
using store::dynamodb::StateStore;

class TestStore {
 public:
  TestStore(const DynaliteProcess& server, uint64_t seed)
      : table_(*store::dynamodb::ParseTableUrl(server.url("limits"),
                                               store::dynamodb::SystemEnvironment())),
        store_(client_, loop_, {.seed = seed}, counters_) {}

  absl::StatusOr<std::optional<Versioned>> Get(std::string_view name) {
    std::optional<absl::StatusOr<std::optional<Versioned>>> answer;
    store_.Get(name, loop_.Now() + 10s, [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(loop_.RunUntil([&] { return answer.has_value(); }, 20s));
    return *std::move(answer);
  }
  absl::StatusOr<Version> Put(std::string_view name, std::optional<std::string_view> bytes,
                              std::optional<Version> expected) {
    std::optional<absl::StatusOr<Version>> answer;
    store_.Put({.name = name, .bytes = bytes, .expected = expected, .deadline = loop_.Now() + 10s},
               [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(loop_.RunUntil([&] { return answer.has_value(); }, 20s));
    return *std::move(answer);
  }

 private:
  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  const store::dynamodb::Table table_;
  store::dynamodb::CredentialSource credentials_{
      loop_, clock_, {.environment = store::dynamodb::SystemEnvironment()}};
  client::http::Client http_{loop_, {.origin = table_.endpoint}};
  store::dynamodb::TableClient client_{http_, clock_, credentials_, table_};
  store::LoopStoreCounters counters_;
  StateStore store_;
};

TEST(StateStore, ReplacesAValueIfItHasNotChanged) {
  DynaliteProcess server;
  server.MakeTable("limits");
  TestStore store(server, 1), other(server, 2);
  for (const std::string& name : {std::string("k"), std::string("a\xff"), std::string(500, 'x'),
                                  std::string("hg:{☃|\"\x01}")}) {
    EXPECT_EQ(*store.Get(name), std::nullopt);
    const auto first = store.Put(name, "one", std::nullopt);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ((*other.Get(name))->bytes, "one");
    EXPECT_EQ((*other.Get(name))->version, *first);
    EXPECT_TRUE(absl::IsAborted(other.Put(name, "two", std::nullopt).status()));
    const auto second = other.Put(name, std::string_view("\0\xff", 2), *first);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ((*store.Get(name))->bytes, std::string("\0\xff", 2));
    EXPECT_TRUE(absl::IsAborted(store.Put(name, "three", *first).status()));
    EXPECT_TRUE(absl::IsAborted(store.Put(name, std::nullopt, *first).status()));
    EXPECT_TRUE(store.Put(name, std::nullopt, *second).ok());
    EXPECT_EQ(*other.Get(name), std::nullopt);
    EXPECT_TRUE(absl::IsAborted(other.Put(name, "x", *second).status()));
    EXPECT_TRUE(absl::IsAborted(other.Put(name, std::nullopt, *second).status()));
    // Made again, it has another version.
    EXPECT_NE(*store.Put(name, "one", std::nullopt), *first);
  }
}

TEST(StateStore, RefusesWhatIsTooLarge) {
  DynaliteProcess server;
  server.MakeTable("limits");
  TestStore store(server, 1);
  const auto made = store.Put("k", std::string(380'000, 'x'), std::nullopt);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*store.Get("k"))->bytes.size(), 380'000u);
  const absl::Status status = store.Put("k", std::string(420'000, 'x'), *made).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_EQ((*store.Get("k"))->version, *made);
}

TEST(StateStore, SaysThatThereIsNoTable) {
  DynaliteProcess server;
  TestStore store(server, 1);
  EXPECT_TRUE(absl::IsNotFound(store.Get("k").status()));
  EXPECT_TRUE(absl::IsNotFound(store.Put("k", "x", std::nullopt).status()));
}

TEST(CreateTable, CanBeRepeated) {
  DynaliteProcess server;
  const auto made = store::dynamodb::CreateTable({.url = server.url("limits")}, 20s);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, ::testing::StartsWith("made the table limits in local"));
  const auto again = store::dynamodb::CreateTable({.url = server.url("limits")}, 20s);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(*again, ::testing::StartsWith("found the table limits in local"));
}

}  // namespace state_store_test
}  // namespace headgate::dynamodb_test
