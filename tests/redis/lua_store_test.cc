// Properties of the scripts other than decisions: clocks that are set back, changes of limits,
// peeks, expiry.
#include "tests/redis/lua_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/model/random_walk.h"

namespace headgate::redis_host {
namespace lua_store_test {

using algorithm::Algorithm;
using algorithm::Decision;
using algorithm::LimitSpec;
using base::Instant;
using store::Operation;
using store::SharedAnswer;
using namespace std::chrono_literals;

class LuaStoreTest : public ::testing::Test {
 protected:
  SharedAnswer Ask(const LimitSpec& spec, uint64_t cost = 1,
                   Operation operation = Operation::kTake) {
    const SharedAnswer answer = store.Ask(
        {.name = "b", .limit = store.Intern(spec), .cost = cost, .operation = operation}, now);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    return answer;
  }
  Decision Peek(const LimitSpec& spec) { return Ask(spec, 0, Operation::kPeek).decision; }
  void Run(std::vector<std::string> command) {
    EXPECT_FALSE(store.keyspace.Run(command, now).is_error());
  }

  LuaStore store;
  Instant now = Instant::FromNanos(1'790'000'000'500'000'000);
};

// At most ten; ten seconds after they are used up, all have refilled.
const std::vector<LimitSpec>& EveryFamily() {
  static const std::vector<LimitSpec> specs = {
      {.algorithm = Algorithm::kTokenBucket, .requests = 10, .period = 10s},
      {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 10s, .burst = 9},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 10s},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 10,
       .period = 10s,
       .align = algorithm::Align::kFirstHit},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 5s},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 10s},
  };
  return specs;
}

TEST_F(LuaStoreTest, RefillContinuesAfterTheClockIsSetBack) {
  const Instant begin = now;
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    now = begin;
    store.keyspace.Clear();
    EXPECT_TRUE(Ask(spec, 7).decision.allowed);
    now = begin - 1h;
    const SharedAnswer answer = Ask(spec);
    EXPECT_TRUE(answer.events.clock_reset);
    EXPECT_TRUE(answer.decision.allowed);
    EXPECT_EQ(answer.decision.remaining, 2u) << "the rest from before";
    EXPECT_FALSE(Ask(spec).events.clock_reset);
    EXPECT_EQ(Peek(spec).remaining, 1u);
    now += 10s;
    EXPECT_EQ(Peek(spec).remaining, 10u);
  }
}

TEST_F(LuaStoreTest, ASmallStepBackIsIgnored) {
  const Instant begin = now;
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    now = begin;
    store.keyspace.Clear();
    Ask(spec, 7);
    const Decision before = Peek(spec);
    now = begin - 900ms;
    const SharedAnswer answer = Ask(spec, 0, Operation::kPeek);
    EXPECT_EQ(answer.events, store::SharedEvents{});
    EXPECT_EQ(answer.decision, before);
  }
}

TEST_F(LuaStoreTest, APeekWritesNothing) {
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    store.keyspace.Clear();
    for (const uint64_t cost : {0u, 1u, 10u, 100u}) Ask(spec, cost, Operation::kPeek);
    Ask(spec, 0);
    EXPECT_EQ(store.keyspace.size(), 0u);
    Ask(spec, 7);
    // Peeked at under another limit, the bucket still belongs to the first.
    LimitSpec other = spec;
    other.requests = 8;
    // A token bucket keeps its tokens, a queue its free_at (7 s out of 9 · 1.25 s), the others
    // their counts.
    const bool tokens = spec.algorithm == Algorithm::kTokenBucket;
    const bool queue = spec.algorithm == Algorithm::kLeakyBucketQueue;
    EXPECT_EQ(Peek(other).remaining, tokens ? 3u : queue ? 4u : 1u);
    EXPECT_EQ(Peek(spec).remaining, 3u);
  }
}

TEST_F(LuaStoreTest, ABucketThatLooksUnusedIsDeleted) {
  for (const LimitSpec& spec : EveryFamily()) {
    if (spec.algorithm == Algorithm::kLeakyBucketQueue || spec.align == algorithm::Align::kFirstHit)
      continue;
    SCOPED_TRACE(model::Describe(spec));
    Ask(spec, 7);
    Ask(spec, 3, Operation::kRefund);
    EXPECT_EQ(store.keyspace.size(), 1u);
    EXPECT_EQ(Ask(spec, 7, Operation::kRefund).decision.remaining, 10u);
    EXPECT_EQ(store.keyspace.size(), 0u);
  }
}

TEST_F(LuaStoreTest, AResetDeletesABucketOfAnyLimit) {
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    for (const uint64_t requests : {uint64_t{0}, spec.requests}) {
      Ask(spec, 7);
      LimitSpec other = spec;
      other.requests = requests;
      const Decision decision = Ask(other, 1, Operation::kReset).decision;
      EXPECT_EQ(decision.remaining, requests == 0 ? 0 : 10u);
      EXPECT_EQ(store.keyspace.size(), 0u);
    }
  }
}

TEST_F(LuaStoreTest, AChangeOfLimitCostsOneAdditionalCall) {
  for (const LimitSpec& from : EveryFamily()) {
    for (const LimitSpec& to : EveryFamily()) {
      if (from == to) continue;
      SCOPED_TRACE(model::Describe(from) + " to " + model::Describe(to));
      store.keyspace.Clear();
      Ask(from, 7);
      store.calls = 0;
      const SharedAnswer answer = Ask(to);
      EXPECT_TRUE(answer.events.carried_over);
      EXPECT_TRUE(answer.decision.allowed);
      EXPECT_EQ(answer.decision.remaining, 2u);
      EXPECT_EQ(store.calls, 2);
      EXPECT_FALSE(Ask(to).events.carried_over);
      EXPECT_EQ(store.calls, 3);
      EXPECT_TRUE(store.keyspace.TimeToLive("b", now).has_value());
    }
  }
}

// Two instances carry the same bucket over. The slower one detects that the bucket has changed
// since its read.
TEST_F(LuaStoreTest, ABucketThatHasChangedSinceItsReadIsNotCarriedOver) {
  for (const LimitSpec& from : EveryFamily()) {
    SCOPED_TRACE(model::Describe(from));
    store.keyspace.Clear();
    Ask(from, 5);
    LimitSpec to = from;
    to.requests = 8;
    const store::LimitHandle limit = store.Intern(to);
    store.context.now = now;
    store::redis::BucketCall slow({.name = "b", .limit = limit}, store.context);
    const auto eval = [&] {
      std::vector<std::string_view> arguments;
      for (size_t i = 1; i < slow.part_count(); ++i) arguments.push_back(slow.Part(i));
      return slow.Read(
          store.host->Eval(store.keyspace, now, slow.script().text, slow.key(), arguments));
    };
    EXPECT_FALSE(eval().has_value());
    Ask(from, 2);  // meanwhile
    EXPECT_FALSE(eval().has_value()) << "read again";
    const auto answer = eval();
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->decision.allowed);
    // Out of three tokens, of 3 s in the queue, of one hit.
    const bool tokens = from.algorithm == Algorithm::kTokenBucket;
    const bool queue = from.algorithm == Algorithm::kLeakyBucketQueue;
    EXPECT_EQ(answer->decision.remaining, tokens ? 2u : queue ? 3u : 0u);
  }
}

TEST_F(LuaStoreTest, AChangedLogKeepsItsHits) {
  const LimitSpec spec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 10s};
  LimitSpec raised = spec;
  raised.requests = 20;
  Ask(spec, 4);
  now += 5s;
  Ask(spec, 4);
  EXPECT_EQ(Ask(raised, 2).decision.remaining, 10u);
  now += 5s;
  EXPECT_EQ(Peek(raised).remaining, 14u);
  now += 5s;
  EXPECT_EQ(Peek(raised).remaining, 20u);
}

TEST_F(LuaStoreTest, ALongLogIsDeletedInParts) {
  const LimitSpec spec{
      .algorithm = Algorithm::kSlidingWindowLog, .requests = 30'000, .period = 10s};
  for (int i = 0; i < 3000; ++i) {
    now += 1us;
    Ask(spec, 1);
  }
  EXPECT_EQ(Peek(spec).remaining, 27'000u);
  EXPECT_EQ(Ask(spec, 29'000).decision.retry_after, 10s - 1us * 1000);
  now += 10s - 1us * 1000;
  EXPECT_EQ(Ask(spec, 1).decision.remaining, 28'999u);
  EXPECT_EQ(store.keyspace.Run(std::vector<std::string>{"LLEN", "b"}, now).integer, 1002);
  now += 10s;
  EXPECT_EQ(Ask(spec, 1).decision.remaining, 29'999u);
  EXPECT_EQ(store.keyspace.Run(std::vector<std::string>{"LLEN", "b"}, now).integer, 2);
}

TEST_F(LuaStoreTest, CalendarWindowsEndAsInTheCppAlgorithm) {
  model::Random random(20'261'121);
  std::vector<LimitSpec> specs;
  for (const char* const zone : {"UTC", "Europe/Berlin", "Asia/Beirut", "Pacific/Honolulu"}) {
    for (const auto align : {algorithm::Align::kCalendarDay, algorithm::Align::kCalendarMonth,
                             algorithm::Align::kCalendarYear, algorithm::Align::kCalendarWeek}) {
      specs.push_back({.algorithm = Algorithm::kFixedWindow,
                       .requests = 10,
                       .align = align,
                       .zone = *base::TimeZone::Load(zone)});
    }
  }
  for (const LimitSpec& spec : specs) {
    for (int i = 0; i < 2000; ++i) {
      store.keyspace.Clear();
      now = Instant::FromNanos(static_cast<int64_t>(random() >> 2));
      // The years of which time zones know the changes.
      if (i % 3 == 0)
        now = Instant::FromNanos(now.ns % 1'262'304'000'000'000'000 + 1'577'836'800'000'000'000);
      // At other times, just before or at the edge.
      if (i % 2 == 0)
        now = WindowEnd(*algorithm::Limit::Make(spec), now) - base::Duration(i % 4 == 0 ? 1 : 0);
      if (now > base::kInstantMax) continue;
      Ask(spec);
      const Decision decision = Peek(spec);
      ASSERT_EQ(decision.remaining, 9u);
      ASSERT_EQ(decision.reset_after, WindowEnd(*algorithm::Limit::Make(spec), now) - now)
          << now.ns;
    }
  }
}

// An error while reading does not count as a damaged value.
TEST_F(LuaStoreTest, ARefusedReadFailsTheScriptAndChangesNothing) {
  const auto is_log = [](const LimitSpec& spec) {
    return spec.algorithm == Algorithm::kSlidingWindowLog;
  };
  for (const LimitSpec& before : EveryFamily()) {
    for (const LimitSpec& spec : EveryFamily()) {
      for (const std::string command : {"GET", "LINDEX"}) {
        // Each kind first reads its own type, then the other type, for a bucket that was of another
        // kind.
        if (is_log(spec) != (command == "LINDEX") && is_log(before) != (command == "LINDEX"))
          continue;
        SCOPED_TRACE(model::Describe(before) + " -> " + model::Describe(spec) + " without " +
                     command);
        store.keyspace.Clear();
        EXPECT_TRUE(Ask(before, 10).decision.allowed);
        store.keyspace.Refuse(command);
        for (const Operation operation : {Operation::kTake, Operation::kPeek}) {
          const SharedAnswer answer =
              store.Ask({.name = "b", .limit = store.Intern(spec), .operation = operation}, now);
          EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable) << answer.status;
          EXPECT_THAT(answer.status.message(), ::testing::HasSubstr("can't run this command"));
        }
        store.keyspace.Refuse("");
        EXPECT_EQ(Peek(before).remaining, 0u);
      }
    }
  }
}

// The host refuses the same things as a server.
TEST(LuaHostTest, RefusesGlobalsAndReportsErrorsOfScripts) {
  LuaHost host;
  Keyspace keyspace;
  const auto eval = [&](std::string_view script) {
    return host.Eval(keyspace, Instant::FromNanos(0), script, "k", {});
  };
  EXPECT_TRUE(eval("x = 1").is_error());
  EXPECT_TRUE(eval("return y").is_error());
  EXPECT_TRUE(eval("return os").is_error());
  EXPECT_TRUE(eval("return redis.call('NOSUCH', 'k')").is_error());
  EXPECT_EQ(eval("return 3.7").integer, 3);
  EXPECT_EQ(eval("return {1, 'a', {ok = 'fine'}}").ToString(), "[1, \"a\", fine]");
  EXPECT_EQ(eval("redis.call('RPUSH', KEYS[1], 'a') return redis.pcall('GET', KEYS[1]).err")
                .text.substr(0, 9),
            "WRONGTYPE");
  EXPECT_EQ(eval("return struct.unpack('>I4', struct.pack('>I4', 4294967295))").integer,
            4294967295);
}

}  // namespace lua_store_test
}  // namespace headgate::redis_host
