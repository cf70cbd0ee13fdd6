// Values with versions on a real server.
#include "headgate/store/redis/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace values_test {

using store::cas::Version;
using store::cas::Versioned;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kName = "hg:{f|default}";

struct Instance {
  explicit Instance(const RedisProcess& server, uint64_t seed)
      : test(TestClient::Single(server.port())), values(*test.client, seed) {}

  std::optional<Versioned> Get() {
    std::optional<absl::StatusOr<std::optional<Versioned>>> answer;
    values.Get(kName, test.loop.Now() + 5s, [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(test.Until([&] { return answer.has_value(); }));
    EXPECT_TRUE(answer->ok()) << answer->status();
    return **answer;
  }
  absl::StatusOr<Version> Put(std::optional<std::string_view> bytes,
                              std::optional<Version> expected, base::Duration life = 60s) {
    std::optional<absl::StatusOr<Version>> answer;
    const base::Instant now = values.TimeAt(test.loop.Now()).value_or(base::Instant{0});
    values.Put({.name = kName,
                .bytes = bytes,
                .expected = expected,
                .expires_at = now + life,
                .deadline = test.loop.Now() + 5s},
               [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(test.Until([&] { return answer.has_value(); }));
    return *answer;
  }

  std::string Command(std::vector<std::string_view> words) {
    std::optional<std::string> answer;
    test.client->CallCommand(
        kName, words, 5s,
        [&](const store::redis::PendingCall::Outcome& reply) { answer = TestClient::Text(reply); });
    EXPECT_TRUE(test.Until([&] { return answer.has_value(); }));
    return answer.value_or("no answer");
  }

  TestClient test;
  store::redis::Values values;
};

TEST(RedisValues, AreReplacedOnlyUnderTheirVersion) {
  RedisProcess server;
  Instance one(server, 1), two(server, 2);
  EXPECT_FALSE(one.Get());
  const auto made = one.Put("first", std::nullopt);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(absl::IsAborted(two.Put("other", std::nullopt).status())) << "it exists";
  const auto found = two.Get();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, "first");
  EXPECT_EQ(found->version, *made);
  const std::string binary("\0\r\n\xff", 4);
  const auto next = two.Put(binary, *made);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(*next == *made);
  EXPECT_TRUE(absl::IsAborted(one.Put("late", *made).status()));
  EXPECT_EQ(one.Get()->bytes, binary);
  EXPECT_TRUE(one.Put(std::nullopt, *next).ok());
  EXPECT_FALSE(two.Get());
  EXPECT_TRUE(absl::IsAborted(two.Put("late", *next).status())) << "it is gone";
}

TEST(RedisValues, ExpireAtTheirTime) {
  RedisProcess server;
  Instance one(server, 1);
  EXPECT_FALSE(one.Get());
  ASSERT_TRUE(one.Put("short", std::nullopt, 1ms).ok());
  const base::BootTime patience = one.test.loop.Now() + 20s;
  while (one.Get() && one.test.loop.Now() < patience) {
  }
  EXPECT_FALSE(one.Get());
}

TEST(RedisValues, AForeignKeyIsReplacedUnderItsOwnVersion) {
  RedisProcess server;
  Instance one(server, 1);
  const std::vector<std::vector<std::string_view>> foreign = {{"SET", kName, "short"},
                                                              {"RPUSH", kName, "a", "list"}};
  for (const auto& command : foreign) {
    one.Command({"DEL", kName});
    EXPECT_THAT(one.Command(command), Not(StartsWith("-")));
    const auto found = one.Get();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->bytes, "");
    const auto put = one.Put("ours", found->version);
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_EQ(one.Get()->bytes, "ours");
  }
}

TEST(RedisValues, TellTheTimeOfTheServer) {
  RedisProcess server;
  Instance one(server, 1), two(server, 2);
  EXPECT_FALSE(one.values.TimeAt(one.test.loop.Now())) << "nobody has asked";
  EXPECT_FALSE(one.Get());
  const base::WallTime now = base::SystemClock().WallNow();
  const base::Instant told = *one.values.TimeAt(one.test.loop.Now());
  EXPECT_LT(std::chrono::abs(told - base::Instant::FromNanos(now.ns)), 5s) << "the same machine";
}

}  // namespace values_test
}  // namespace headgate::redis_test
