// Permits on a real server: compared with permit::PermitSet over random questions, and with the
// server's own clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "headgate/base/random.h"
#include "headgate/permit/permit_set.h"
#include "headgate/store/redis/redis_store.h"
#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace permit_test {

using permit::Answer;
using permit::Ask;
using permit::PermitSet;
using store::redis::RedisStore;
using Kind = Ask::Kind;
using Outcome = Answer::Outcome;
using Reply = absl::StatusOr<Answer>;

// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'126;
constexpr std::string_view kName = "hg:{p|edge|api_key=k1}";
constexpr base::Instant kNow = base::Instant::FromNanos(1'790'000'000'000'000'000);

Ask Acquire(uint64_t id, uint32_t max, base::Duration ttl = 1h) {
  return {.kind = Kind::kAcquire, .id = {.low = id, .high = id * 7}, .max = max, .ttl = ttl};
}
Ask Release(uint64_t id) { return {.kind = Kind::kRelease, .id = {.low = id, .high = id * 7}}; }

struct Permits {
  explicit Permits(store::redis::RedisOptions options) : test(std::move(options)) {}

  Reply Do(const Ask& ask, std::string_view name = kName) {
    std::optional<Reply> answer;
    store.AskPermits({.name = name, .ask = ask}, [&](const Reply& given) { answer = given; });
    EXPECT_TRUE(test.Until([&] { return answer.has_value(); }));
    return answer.value_or(absl::UnknownError("no answer"));
  }
  Outcome OutcomeOf(const Ask& ask) {
    const Reply answer = Do(ask);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->outcome : Outcome::kNoRoom;
  }

  TestClient test;
  store::LimitTable limits;
  RedisStore store{*test.client, limits, {}};
};

// Nothing ends during the test, so the two clocks need not agree.
TEST(RedisPermits, AnswersLikeTheCppSet) {
  RedisProcess server;
  Permits permits(TestClient::Single(server.port()));
  base::Random random(kSeed);
  PermitSet model;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<Outcome, uint32_t>> expected, answers;
    for (int i = 0; i < 500; ++i) {
      Ask ask{.kind = random.Below(100) == 0 ? Kind::kClear : static_cast<Kind>(random.Below(3)),
              .id = {.low = random.Below(12), .high = random.Below(2) << 60},
              .max = static_cast<uint32_t>(random.Below(12)),
              .ttl = 1h};
      const Answer answer = model.Do(ask, kNow);
      expected.emplace_back(answer.outcome, answer.in_flight);
      permits.store.AskPermits({.name = kName, .ask = ask}, [&](const Reply& given) {
        ASSERT_TRUE(given.ok()) << given.status();
        EXPECT_EQ(given->expired, 0u);
        answers.emplace_back(given->outcome, given->in_flight);
      });
    }
    ASSERT_TRUE(permits.test.Until([&] { return answers.size() == expected.size(); }));
    ASSERT_EQ(answers, expected) << "round " << round;
  }
}

TEST(RedisPermits, APermitEndsByTheServersClockAndItsKeyWithIt) {
  RedisProcess server;
  Permits permits(TestClient::Single(server.port()));
  ASSERT_EQ(permits.OutcomeOf(Acquire(1, 1, 300ms)), Outcome::kGranted);
  const Reply full = permits.Do(Acquire(2, 1, 300ms));
  EXPECT_EQ(full->outcome, Outcome::kFull);
  EXPECT_GT(full->first_end_after, base::Duration(0));
  EXPECT_LE(full->first_end_after, 300ms);
  EXPECT_EQ(full->first_end_after, full->last_end_after);
  EXPECT_TRUE(permits.test.Until(
      [&] { return permits.OutcomeOf(Acquire(2, 1, 300ms)) == Outcome::kGranted; }));
  EXPECT_EQ(permits.OutcomeOf(Release(1)), Outcome::kUnknown);
  // The key goes with its last permit.
  EXPECT_TRUE(
      permits.test.Until([&] { return server.Ask("EXISTS " + std::string(kName)) == ":0\r\n"; }));
}

TEST(RedisPermits, TheKeyStaysAsLongAsItsLastPermit) {
  RedisProcess server;
  Permits permits(TestClient::Single(server.port()));
  EXPECT_TRUE(permits.Do(Acquire(1, 9, 100s)).ok());
  EXPECT_TRUE(permits.Do(Acquire(2, 9, 10s)).ok());
  const int64_t ms = std::stoll(server.Ask("PTTL " + std::string(kName)).substr(1));
  EXPECT_GT(ms, 90'000);
  EXPECT_LE(ms, 100'001);
  // Renewed, and not shortened by a late message.
  EXPECT_TRUE(permits.Do(Acquire(2, 9, 500s)).ok());
  EXPECT_TRUE(permits.Do(Acquire(2, 9, 5s)).ok());
  const Reply look = permits.Do({.kind = Kind::kPeek, .max = 9});
  EXPECT_EQ(look->in_flight, 2u);
  EXPECT_GT(look->last_end_after, 490s);
  EXPECT_LE(look->last_end_after, 500s);
  EXPECT_GT(std::stoll(server.Ask("PTTL " + std::string(kName)).substr(1)), 490'000);
}

TEST(RedisPermits, AKeyOfAnotherTypeIsReportedAndLeftAlone) {
  RedisProcess server;
  Permits permits(TestClient::Single(server.port()));
  server.Ask("SET " + std::string(kName) + " foreign");
  EXPECT_EQ(permits.Do(Acquire(1, 1)).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(server.Ask("GET " + std::string(kName)), "$7\r\nforeign\r\n");
}

TEST(RedisPermits, AMissingRightIsReportedAndCounted) {
  RedisProcess server({"--user", "gate", "on", ">secret", "~hg:*", "+@all", "-zremrangebyscore"});
  store::redis::RedisOptions options = TestClient::Single(server.port());
  options.user = "gate";
  options.password = "secret";
  Permits permits(options);
  EXPECT_EQ(permits.Do(Acquire(1, 1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(permits.store.ReadCounters().script_errors, 1u);
}

}  // namespace permit_test
}  // namespace headgate::redis_test
