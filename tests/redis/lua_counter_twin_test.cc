// Compares the script of counters with algorithm::Increment, in the Lua host: random changes of one
// counter, with small and with extreme numbers, without a difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "headgate/algorithm/counter.h"
#include "headgate/store/redis/counter_call.h"
#include "tests/redis/counter_walk.h"
#include "tests/redis/lua_host.h"

namespace headgate::redis_host {
namespace lua_counter_twin_test {

using algorithm::CounterAnswer;
using algorithm::CounterChange;
using base::Instant;
using store::redis::CounterCall;
using ::testing::IsSupersetOf;
using wire::RespValue;
using Outcome = CounterAnswer::Outcome;

constexpr uint64_t kSteps = 25'000;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'124;
constexpr Instant kNow = Instant::FromNanos(1'790'000'000'000'000'000);

struct LuaCounter {
  CounterAnswer Change(const CounterChange& change, Instant now) {
    const CounterCall call({.name = "n", .change = change});
    const auto answer = CounterCall::Read(
        lua.Eval(keyspace, now, CounterCall::script().text, call.key(), call.arguments()));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(CounterAnswer{});
  }
  RespValue Run(const std::vector<std::string>& command) { return keyspace.Run(command, kNow); }

  LuaHost lua;
  Keyspace keyspace;
};

TEST(LuaCounter, AnswersLikeTheCppAlgorithm) {
  LuaCounter lua;
  for (const CounterWalk::Numbers numbers :
       {CounterWalk::Numbers::kSmall, CounterWalk::Numbers::kExtreme}) {
    CounterWalk walk(kSeed, numbers);
    std::set<Outcome> seen;
    for (uint64_t i = 0; i < kSteps; ++i) {
      const CounterChange change = walk.Next();
      const CounterAnswer expected = walk.Answer(change);
      seen.insert(expected.outcome);
      const CounterAnswer answer = lua.Change(change, walk.now());
      ASSERT_EQ(Describe(answer), Describe(expected)) << "step " << i << ": " << Describe(change);
      ASSERT_EQ(lua.keyspace.Contains("n", walk.now()), walk.counter().has_value()) << "step " << i;
      ASSERT_EQ(lua.keyspace.TimeToLive("n", walk.now()), walk.TimeToLive()) << "step " << i;
      if (walk.counter()) {
        ASSERT_EQ(lua.keyspace.Run(std::vector<std::string>{"GET", "n"}, walk.now()).text,
                  base::ToText(walk.counter()->value));
      }
    }
    lua.keyspace.Clear();
    EXPECT_THAT(seen, IsSupersetOf({Outcome::kApplied, Outcome::kRefused, Outcome::kNotAnInteger}));
    if (numbers == CounterWalk::Numbers::kExtreme) {
      EXPECT_THAT(seen, IsSupersetOf({Outcome::kAppliedOverflow, Outcome::kTooManyDigits}));
    }
  }
}

TEST(LuaCounter, LeavesForeignValuesAlone) {
  LuaCounter lua;
  const CounterChange integer;
  const CounterChange decimal{.kind = CounterChange::Kind::kDecimal};
  for (const std::string value :
       {"", "abc", "1e3", "0x1", "1.", ".5", "+1", " 1", "1\n", "--1", "9223372036854775808",
        "-9223372036854775809", "1.000000000000000001", "99999999999999999999", "inf",
        "\x01\x00binary"}) {
    SCOPED_TRACE(value);
    lua.Run({"SET", "n", value});
    EXPECT_EQ(lua.Change(integer, kNow).outcome, Outcome::kNotAnInteger);
    EXPECT_EQ(lua.Change(decimal, kNow).outcome, Outcome::kNotANumber);
    EXPECT_EQ(lua.Run({"GET", "n"}).text, value);
  }
  lua.Run({"SET", "n", "1.50"});
  EXPECT_EQ(lua.Change(integer, kNow).outcome, Outcome::kNotAnInteger);
  EXPECT_EQ(Describe(lua.Change(decimal, kNow)), "0: 2.5 (1)");
  lua.Run({"SET", "n", "-0"});
  EXPECT_EQ(Describe(lua.Change(integer, kNow)), "0: 1 (1)");
  lua.Run({"DEL", "n"});
  lua.Run({"RPUSH", "n", "1"});
  EXPECT_EQ(lua.Change(integer, kNow).outcome, Outcome::kWrongType);
}

TEST(LuaCounter, AMissingRightIsNoAnswer) {
  LuaCounter lua;
  lua.keyspace.Refuse("GET");
  const CounterCall call({.name = "n", .change = {}});
  const auto answer = CounterCall::Read(
      lua.lua.Eval(lua.keyspace, kNow, CounterCall::script().text, call.key(), call.arguments()));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
}

// Redis 5 has no KEEPTTL.
TEST(LuaCounter, KeepsTheExpiryOnAServerWithoutKeepTtl) {
  LuaCounter lua;
  lua.keyspace.without_keepttl = true;
  lua.Change({.expiry = {.kind = algorithm::CounterExpiry::Kind::kIn,
                         .time = std::chrono::milliseconds(1500)}},
             kNow);
  EXPECT_EQ(Describe(lua.Change({}, kNow)), "0: 2 (1)");
  EXPECT_EQ(lua.keyspace.TimeToLive("n", kNow), std::chrono::milliseconds(1500));
  lua.Change({.expiry = {.kind = algorithm::CounterExpiry::Kind::kRemove}}, kNow);
  EXPECT_EQ(Describe(lua.Change({}, kNow)), "0: 4 (1)");
  EXPECT_EQ(lua.keyspace.TimeToLive("n", kNow), std::nullopt);
}

}  // namespace lua_counter_twin_test
}  // namespace headgate::redis_host
