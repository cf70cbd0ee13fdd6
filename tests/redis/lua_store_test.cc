// Properties of the scripts other than decisions: clocks that are set back, changes of limits,
// peeks, foreign values, expiry.
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
  Decision Look(const LimitSpec& spec) { return Ask(spec, 0, Operation::kPeek).decision; }
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
    EXPECT_EQ(Look(spec).remaining, 1u);
    now += 10s;
    EXPECT_EQ(Look(spec).remaining, 10u);
  }
}

TEST_F(LuaStoreTest, ASmallStepBackIsIgnored) {
  const Instant begin = now;
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    now = begin;
    store.keyspace.Clear();
    Ask(spec, 7);
    const Decision before = Look(spec);
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
    EXPECT_EQ(Look(other).remaining, tokens ? 3u : queue ? 4u : 1u);
    EXPECT_EQ(Look(spec).remaining, 3u);
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
    EXPECT_FALSE(eval().has_value()) << "read anew";
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
  EXPECT_EQ(Look(raised).remaining, 14u);
  now += 5s;
  EXPECT_EQ(Look(raised).remaining, 20u);
}

TEST_F(LuaStoreTest, ALongLogIsDeletedInParts) {
  const LimitSpec spec{
      .algorithm = Algorithm::kSlidingWindowLog, .requests = 30'000, .period = 10s};
  for (int i = 0; i < 3000; ++i) {
    now += 1us;
    Ask(spec, 1);
  }
  EXPECT_EQ(Look(spec).remaining, 27'000u);
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
  for (const auto align : {algorithm::Align::kCalendarMonth, algorithm::Align::kCalendarYear}) {
    const LimitSpec spec{
        .algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 0s, .align = align};
    for (int i = 0; i < 5000; ++i) {
      store.keyspace.Clear();
      now = Instant::FromNanos(static_cast<int64_t>(random() >> 2));
      // At other times, just before or at the edge.
      if (i % 2 == 0)
        now = WindowEnd(*algorithm::Limit::Make(spec), now) - base::Duration(i % 4 == 0 ? 1 : 0);
      if (now > base::kInstantMax) continue;
      Ask(spec);
      const Decision decision = Look(spec);
      ASSERT_EQ(decision.remaining, 9u);
      ASSERT_EQ(decision.reset_after, WindowEnd(*algorithm::Limit::Make(spec), now) - now)
          << now.ns;
    }
  }
}

TEST_F(LuaStoreTest, AKeyOfAnotherTypeIsReplaced) {
  for (const LimitSpec& spec : EveryFamily()) {
    for (const std::vector<std::string>& foreign : {std::vector<std::string>{"SET", "b", "hello"},
                                                    {"RPUSH", "b", "x", "y"},
                                                    {"HSET", "b", "x", "y"}}) {
      SCOPED_TRACE(model::Describe(spec) + foreign[0]);
      store.keyspace.Clear();
      Run(foreign);
      const SharedAnswer answer = Ask(spec, 3);
      EXPECT_TRUE(answer.events.replaced_corrupt);
      EXPECT_EQ(answer.decision.remaining, 7u);
      EXPECT_EQ(Look(spec).remaining, 7u);
      EXPECT_TRUE(store.keyspace.TimeToLive("b", now).has_value());
    }
  }
}

// An error while reading does not count as a foreign value.
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
          EXPECT_FALSE(answer.events.replaced_corrupt);
        }
        store.keyspace.Refuse("");
        EXPECT_EQ(Look(before).remaining, 0u);
      }
    }
  }
}

TEST_F(LuaStoreTest, AValueLongerThanAnyBucketIsReplaced) {
  const std::string longer(store::kValueBytesMax, 'x');
  const std::string many(12, 'x');
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    std::vector<std::string> list = {"RPUSH", "b", "\x01"};
    list.resize(3 + store::kValueBytesMax / 12, many);
    for (const std::vector<std::string>& foreign :
         {std::vector<std::string>{"SET", "b", "\x01" + longer},
          {"RPUSH", "b", "\x01", longer},
          list}) {
      store.keyspace.Clear();
      Run(foreign);
      const int calls = store.calls;
      const SharedAnswer answer = Ask(spec, 3);
      EXPECT_TRUE(answer.events.replaced_corrupt);
      EXPECT_EQ(answer.decision.remaining, 7u);
      EXPECT_EQ(store.calls, calls + 1) << "the long value is not sent";
      EXPECT_EQ(Look(spec).remaining, 7u);
    }
  }
}

// Values with our prefix that cannot be buckets.
TEST_F(LuaStoreTest, BucketsWithImpossibleNumbersAreReplaced) {
  const std::string far = "\x7f\xff\xff\xff\xff\xff\xff\xff";
  const std::string soon = "\x18\xd7\x5b\x84\x23\xf3\x01\x00";
  const auto four = [](char c) { return std::string(3, '\0') + c; };
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    std::string prefix;
    store::AppendLimit(spec, prefix);
    std::vector<std::vector<std::string>> foreign;
    if (spec.algorithm == Algorithm::kSlidingWindowLog) {
      foreign = {{"RPUSH", "b", prefix + four(3) + soon, far + four(3)},   // a hit in the future
                 {"RPUSH", "b", prefix + four(4) + soon, soon + four(5)},  // more than the total
                 {"RPUSH", "b", prefix + four(4) + soon},  // fewer hits than the count says
                 {"RPUSH", "b", prefix + four(4) + far, soon + four(4)}};  // a later clock
    } else {
      foreign = {{"SET", "b", prefix + soon + four(3) + std::string(8, '\xff')}};  // a later clock
      if (spec.algorithm != Algorithm::kSlidingWindowCounter) {
        foreign.push_back({"SET", "b", prefix + far + four(3) + soon});  // centuries in the future
        foreign.push_back({"SET", "b", prefix + std::string(8, '\xff') + four(3) + soon});
      }
      if (IsBucket(spec.algorithm)) {
        foreign.push_back(
            {"SET", "b", prefix + soon + four(10) + soon});  // a whole nanosecond or more
      }
    }
    for (const std::vector<std::string>& command : foreign) {
      for (const Operation operation : {Operation::kPeek, Operation::kTake}) {
        store.keyspace.Clear();
        Run(command);
        const SharedAnswer answer = Ask(spec, 3, operation);
        // A valid value with a later clock was written before the clock was set back.
        EXPECT_TRUE(answer.events.replaced_corrupt || answer.events.clock_reset);
        EXPECT_TRUE(answer.decision.allowed);
        const bool fresh = operation == Operation::kTake && answer.events.replaced_corrupt;
        EXPECT_TRUE(!fresh || Look(spec).remaining == 7);
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
