// Counters on a real server: compared with algorithm::Increment over random changes, and with the
// server's own expiries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "headgate/store/redis/redis_store.h"
#include "tests/redis/client_fixture.h"
#include "tests/redis/counter_walk.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace counter_test {

using algorithm::CounterAnswer;
using algorithm::CounterChange;
using algorithm::CounterExpiry;
using redis_host::CounterWalk;
using redis_host::Describe;
using store::redis::RedisStore;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kSteps = 20'000;
constexpr uint64_t kStepsAtOnce = 500;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'124;

struct Counters {
  explicit Counters(store::redis::RedisOptions options) : test(std::move(options)) {}

  // The answer, or the status.
  std::string Change(const CounterChange& change = {}, std::string_view name = "hg:{c|k}") {
    std::optional<std::string> answer;
    store.Increment({.name = name, .change = change},
                    [&](const absl::StatusOr<CounterAnswer>& given) {
                      answer = given.ok() ? Describe(*given) : given.status().ToString();
                    });
    EXPECT_TRUE(test.Until([&] { return answer.has_value(); }));
    return answer.value_or("no answer");
  }
  std::string Expire(CounterExpiry::Kind kind, std::chrono::milliseconds time = {},
                     bool only_if_none = false) {
    return Change({.expiry = {.kind = kind, .time = time, .only_if_none = only_if_none}});
  }

  TestClient test;
  store::LimitTable limits;
  RedisStore store{*test.client, limits, {}};
};

TEST(RedisCounter, AnswersLikeTheCppAlgorithm) {
  RedisProcess server;
  Counters counters(TestClient::Single(server.port()));
  for (const CounterWalk::Numbers numbers :
       {CounterWalk::Numbers::kSmall, CounterWalk::Numbers::kExtreme}) {
    const std::string name = fmt::format("hg:{{c|{}}}", static_cast<int>(numbers));
    CounterWalk walk(kSeed, numbers);
    for (uint64_t step = 0; step < kSteps;) {
      std::vector<std::string> expected, answers;
      for (uint64_t i = 0; i < kStepsAtOnce; ++i, ++step) {
        CounterChange change = walk.Next();
        // The walk's time is not the server's, so nothing may expire.
        if (change.expiry.kind == CounterExpiry::Kind::kAt)
          change.expiry.kind = CounterExpiry::Kind::kIn;
        change.expiry.time = 100h;
        expected.push_back(Describe(walk.Answer(change)));
        counters.store.Increment(
            {.name = name, .change = change}, [&](const absl::StatusOr<CounterAnswer>& answer) {
              answers.push_back(answer.ok() ? Describe(*answer) : answer.status().ToString());
            });
      }
      ASSERT_TRUE(counters.test.Until([&] { return answers.size() == kStepsAtOnce; }));
      ASSERT_EQ(answers, expected) << "up to step " << step;
    }
    EXPECT_THAT(server.Ask("GET " + name), HasSubstr(base::ToText(walk.counter()->value)));
    const bool expires = walk.counter()->expires_at != algorithm::Counter::kNeverExpires;
    EXPECT_EQ(server.Ask("PTTL " + name) != ":-1\r\n", expires);
  }
}

TEST(RedisCounter, ExpiresByTheServersClock) {
  using Kind = CounterExpiry::Kind;
  RedisProcess server;
  Counters counters(TestClient::Single(server.port()));
  const auto ttl = [&] { return server.Ask("TTL hg:{c|k}"); };
  // Whether most of 1000 s is left; all of it if no millisecond has passed.
  const auto is_kept = [&] {
    const int64_t ms = std::stoll(server.Ask("PTTL hg:{c|k}").substr(1));
    return ms > 900'000 && ms <= 1'000'000;
  };
  EXPECT_EQ(counters.Expire(Kind::kIn, 1000s), "0: 1 (1)");
  EXPECT_THAT(ttl(), ::testing::AnyOf(":1000\r\n", ":999\r\n"));
  EXPECT_EQ(counters.Change(), "0: 2 (1)");
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(counters.Expire(Kind::kIn, 5000s, true), "0: 3 (1)");
  EXPECT_TRUE(is_kept());
  EXPECT_EQ(counters.Expire(Kind::kRemove), "0: 4 (1)");
  EXPECT_EQ(ttl(), ":-1\r\n");
  EXPECT_EQ(counters.Expire(Kind::kIn, 5000s, true), "0: 5 (1)");
  EXPECT_THAT(ttl(), ::testing::AnyOf(":5000\r\n", ":4999\r\n"));
  const auto in_an_hour = std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::nanoseconds(counters.test.clock.WallNow().ns) + 1h);
  EXPECT_EQ(counters.Expire(Kind::kAt, in_an_hour), "0: 6 (1)");
  EXPECT_THAT(ttl(), ::testing::AnyOf(":3600\r\n", ":3599\r\n"));
  EXPECT_EQ(counters.Expire(Kind::kAt, 1ms), "0: 7 (1)");
  EXPECT_EQ(ttl(), ":-2\r\n");
  EXPECT_EQ(counters.Expire(Kind::kIn, 20ms), "0: 1 (1)");
  counters.test.Run(50ms);
  EXPECT_EQ(counters.Change(), "0: 1 (1)");
}

TEST(RedisCounter, ALongNameIsHashed) {
  RedisProcess server;
  Counters counters(TestClient::Single(server.port()));
  const std::string name(1000, 'x');
  EXPECT_EQ(counters.Change({}, name), "0: 1 (1)");
  EXPECT_EQ(server.Ask("GET " + store::redis::HashedName(name)), "$1\r\n1\r\n");
}

TEST(RedisCounter, AMissingRightIsReportedAndCounted) {
  RedisProcess server({"--user", "gate", "on", ">secret", "~hg:*", "+@all", "-get"});
  store::redis::RedisOptions options = TestClient::Single(server.port());
  options.user = "gate";
  options.password = "secret";
  Counters counters(options);
  EXPECT_THAT(counters.Change(), StartsWith("UNAVAILABLE"));
  EXPECT_EQ(counters.store.ReadCounters().script_errors, 1u);
}

}  // namespace counter_test
}  // namespace headgate::redis_test
