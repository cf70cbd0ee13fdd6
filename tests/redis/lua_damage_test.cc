// Values that are damaged or foreign: nothing is decided about them, and nobody gets a fresh bucket
// in their place, until the key is reset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/store/big_endian.h"
#include "headgate/store/redis/value_checksum.h"
#include "tests/model/random_walk.h"
#include "tests/redis/kinds.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {
namespace lua_damage_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Instant;
using store::Operation;
using store::SharedAnswer;
using namespace std::chrono_literals;

class LuaDamage : public ::testing::Test {
 protected:
  SharedAnswer Ask(const LimitSpec& spec, uint64_t cost = 1,
                   Operation operation = Operation::kTake) {
    return store.Ask(
        {.name = "b", .limit = store.Intern(spec), .cost = cost, .operation = operation}, now);
  }
  uint64_t Remaining(const LimitSpec& spec) {
    const SharedAnswer answer = Ask(spec, 0, Operation::kPeek);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    return answer.decision.remaining;
  }
  void Lend(const LimitSpec& spec) {
    const SharedAnswer answer = store.Ask(
        {.name = "b",
         .limit = store.Intern(spec),
         .lease = store::LeaseAsk{.id = {.node = 7, .number = 1}, .want = 2, .brief = 2, .ttl = 2s},
         .leased = true},
        now);
    EXPECT_EQ(answer.grant.granted, 2u) << answer.status;
  }
  wire::RespValue Run(std::vector<std::string> command) {
    wire::RespValue reply = store.keyspace.Run(command, now);
    EXPECT_FALSE(reply.is_error()) << reply.ToString();
    return reply;
  }
  // The stored string, or the elements of the stored list.
  std::vector<std::string> Stored() {
    wire::RespValue reply = store.keyspace.Run(std::vector<std::string>{"GET", "b"}, now);
    if (!reply.is_error()) return {reply.text};
    std::vector<std::string> items;
    for (const wire::RespValue& item : Run({"LRANGE", "b", "0", "-1"}).items)
      items.push_back(item.text);
    return items;
  }
  void Store(const LimitSpec& spec, const std::vector<std::string>& items) {
    store.keyspace.Clear();
    std::vector<std::string> command = {
        spec.algorithm == Algorithm::kSlidingWindowLog ? "RPUSH" : "SET", "b"};
    command.insert(command.end(), items.begin(), items.end());
    Run(command);
  }
  // Turns each bit of the first stored string in turn.
  void ExpectEachBitIsGuarded(const LimitSpec& spec) {
    const std::vector<std::string> stored = Stored();
    // Two bits of the place of the checksum turn it into a time in the years 2043 and 2116, until
    // which the bucket would remember an earlier limit. That is too long for a value without a
    // checksum, but a queue or a log that remembers one never has a checksum.
    std::string prefix;
    store::AppendLimit(spec, prefix);
    const bool is_log = spec.algorithm == Algorithm::kSlidingWindowLog;
    const size_t place = prefix.size() + (is_log ? 12 : 20);
    const bool guards_place = KeepsLeases(spec.algorithm) || stored[0][place] != '\0';
    for (size_t bit = 0; bit < 8 * stored[0].size(); ++bit) {
      if (!guards_place && bit / 8 == place && (bit % 8 == 5 || bit % 8 == 6)) continue;
      std::vector<std::string> damaged = stored;
      damaged[0][bit / 8] = static_cast<char>(damaged[0][bit / 8] ^ (1 << bit % 8));
      Store(spec, damaged);
      const SharedAnswer answer = Ask(spec);
      ASSERT_TRUE(absl::IsDataLoss(answer.status)) << "bit " << bit << ": " << answer.status;
    }
    Store(spec, stored);
    EXPECT_TRUE(Ask(spec).status.ok());
  }
  // Nothing is decided about the value, and it stays, until it is reset.
  void ExpectDamaged(const LimitSpec& spec) {
    const std::vector<std::string> stored = Stored();
    for (const Operation operation :
         {Operation::kTake, Operation::kPeek, Operation::kCharge, Operation::kUndo}) {
      if (spec.algorithm == Algorithm::kLeakyBucketQueue && operation == Operation::kUndo) continue;
      const SharedAnswer answer = Ask(spec, 3, operation);
      EXPECT_TRUE(absl::IsDataLoss(answer.status)) << answer.status;
    }
    EXPECT_EQ(Stored(), stored);
    EXPECT_TRUE(Ask(spec, 1, Operation::kReset).status.ok());
    EXPECT_EQ(Remaining(spec), 10u);
  }

  LuaStore store;
  Instant now = Instant::FromNanos(1'790'000'000'500'000'000);
};

std::vector<LimitSpec> EveryKind() {
  return With(KindsThatLease(10, 10s), KindsThatNeverLease(10, 10s));
}

TEST_F(LuaDamage, EachBitOfAValueIsGuarded) {
  for (const LimitSpec& spec : EveryKind()) {
    SCOPED_TRACE(model::Describe(spec));
    store.keyspace.Clear();
    ASSERT_TRUE(Ask(spec, 3).status.ok());
    ExpectEachBitIsGuarded(spec);
    if (!algorithm::KeepsLeases(spec.algorithm)) continue;
    store.keyspace.Clear();
    ASSERT_TRUE(Ask(spec, 3).status.ok());
    Lend(spec);
    ExpectEachBitIsGuarded(spec);
  }
}

// A value that remembers an earlier limit has its checksum at the end.
TEST_F(LuaDamage, EachBitOfAValueThatRemembersAnEarlierLimitIsGuarded) {
  for (const LimitSpec& spec : KindsThatLease(10, 10s)) {
    if (IsCalendar(spec.align)) continue;
    SCOPED_TRACE(model::Describe(spec));
    LimitSpec earlier = spec;
    earlier.period = 1h;
    for (const bool lends : {false, true}) {
      store.keyspace.Clear();
      ASSERT_TRUE(Ask(earlier, 3).status.ok());
      ASSERT_TRUE(Ask(spec, 1).status.ok());
      if (lends) Lend(spec);
      const std::vector<std::string> stored = Stored();
      const auto bucket = store::redis::BucketOfValue(stored[0]);
      ASSERT_TRUE(bucket.has_value());
      EXPECT_EQ(bucket->size() + 32, stored[0].size());
      const auto parsed = store::ParseBucket(*bucket);
      ASSERT_TRUE(parsed.has_value());
      EXPECT_GT(parsed->remembered_until, now);
      EXPECT_EQ(parsed->leases.size(), lends ? 1u : 0u);
      ExpectEachBitIsGuarded(spec);
    }
  }
}

// A mark is like the checksum a lease of nothing. A value that is carried over has no checksum yet.
TEST_F(LuaDamage, AMarkIsCarriedOverToAnotherLimit) {
  for (const LimitSpec& spec : KindsThatLease(1000, 10s)) {
    if (IsCalendar(spec.align)) continue;
    SCOPED_TRACE(model::Describe(spec));
    store.keyspace.Clear();
    const auto ask = [&](uint64_t node, uint64_t cost, uint64_t want) {
      return store.Ask({.name = "b",
                        .limit = store.Intern(spec),
                        .lease = store::LeaseAsk{.id = {.node = node, .number = 1},
                                                 .cost = cost,
                                                 .want = want,
                                                 .brief = want,
                                                 .ttl = 2s},
                        .leased = true},
                       now);
    };
    EXPECT_GT(ask(7, 800, 100).grant.granted, 0u);
    EXPECT_FALSE(ask(8, 200, 0).decision.allowed) << "node 7 has half of the 200";
    const auto parsed = store::ParseBucket(*store::redis::BucketOfValue(Stored()[0]));
    ASSERT_EQ(parsed->leases.size(), 2u);
    EXPECT_TRUE(parsed->leases.back().is_mark());
    LimitSpec later = spec;
    later.period = 20s;
    const SharedAnswer answer = Ask(later, 1);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_TRUE(answer.events.carried_over);
  }
}

// The caller checks a value that it is to carry over to another limit.
TEST_F(LuaDamage, ADamagedValueIsNotCarriedOver) {
  for (const LimitSpec& from : EveryKind()) {
    for (const LimitSpec& to : EveryKind()) {
      if (from == to) continue;
      SCOPED_TRACE(model::Describe(from) + " to " + model::Describe(to));
      store.keyspace.Clear();
      ASSERT_TRUE(Ask(from, 3).status.ok());
      const std::vector<std::string> stored = Stored();
      EXPECT_EQ(Remaining(to) <= 7, true);
      std::vector<std::string> damaged = stored;
      const size_t last_of_seen = damaged[0].size() - 9;
      damaged[0][last_of_seen] = static_cast<char>(damaged[0][last_of_seen] ^ 1);
      Store(from, damaged);
      ExpectDamaged(to);
    }
  }
}

// Earlier versions of Headgate wrote no checksum.
TEST_F(LuaDamage, AValueWithoutAChecksumIsReadAndGetsOne) {
  for (const LimitSpec& spec : EveryKind()) {
    SCOPED_TRACE(model::Describe(spec));
    store.keyspace.Clear();
    ASSERT_TRUE(Ask(spec, 3).status.ok());
    std::vector<std::string> items = Stored();
    const size_t size = items[0].size();
    items[0].resize(size - 8);
    Store(spec, items);
    EXPECT_EQ(Remaining(spec), 7u);
    EXPECT_EQ(Ask(spec).decision.remaining, 6u);
    EXPECT_EQ(Stored()[0].size(), size);
  }
}

TEST_F(LuaDamage, AHitThatIsCutOrMissingIsNoticed) {
  const LimitSpec spec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 10s};
  ASSERT_TRUE(Ask(spec, 3).status.ok());
  std::vector<std::string> items = Stored();
  Store(spec, {items[0]});
  ExpectDamaged(spec);
  Store(spec, {items[0], items[1].substr(1)});
  ExpectDamaged(spec);
}

TEST_F(LuaDamage, AKeyOfAnotherTypeStays) {
  for (const LimitSpec& spec : EveryKind()) {
    for (const std::vector<std::string>& foreign :
         {std::vector<std::string>{"SET", "b", "hello"}, {"RPUSH", "b", "x", "y"}}) {
      SCOPED_TRACE(model::Describe(spec) + foreign[0]);
      store.keyspace.Clear();
      Run(foreign);
      ExpectDamaged(spec);
    }
    store.keyspace.Clear();
    Run({"HSET", "b", "x", "y"});
    EXPECT_TRUE(absl::IsDataLoss(Ask(spec).status));
    EXPECT_TRUE(Ask(spec, 1, Operation::kReset).status.ok());
    EXPECT_EQ(Remaining(spec), 10u);
  }
}

TEST_F(LuaDamage, AValueLongerThanAnyBucketStaysAndIsNotSent) {
  const std::string longer(store::kValueBytesMax, 'x');
  const std::string many(12, 'x');
  for (const LimitSpec& spec : EveryKind()) {
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
      EXPECT_TRUE(absl::IsDataLoss(Ask(spec, 3).status));
      EXPECT_EQ(store.calls, calls + 1) << "the long value is not sent";
      EXPECT_TRUE(Ask(spec, 1, Operation::kReset).status.ok());
      EXPECT_EQ(Remaining(spec), 10u);
    }
  }
}

// Values with our prefix that cannot be buckets.
TEST_F(LuaDamage, ImpossibleNumbersAreNoticed) {
  const std::string far = "\x7f\xff\xff\xff\xff\xff\xff\xff";
  const std::string soon = "\x18\xd7\x5b\x84\x23\xf3\x01\x00";
  const auto four = [](char c) { return std::string(3, '\0') + c; };
  for (const LimitSpec& spec : EveryKind()) {
    SCOPED_TRACE(model::Describe(spec));
    std::string prefix;
    store::AppendLimit(spec, prefix);
    std::vector<std::vector<std::string>> foreign;
    if (spec.algorithm == Algorithm::kSlidingWindowLog) {
      foreign = {{prefix + four(3) + soon, far + four(3)},   // a hit in the future
                 {prefix + four(4) + soon, soon + four(5)},  // more than the total
                 {prefix + four(4) + soon}};                 // fewer hits than the count says
    } else {
      foreign = {{prefix + soon + four(3) + std::string(8, '\xff')}};  // a later clock
      if (spec.algorithm != Algorithm::kSlidingWindowCounter) {
        foreign.push_back({prefix + far + four(3) + soon});  // centuries in the future
        foreign.push_back({prefix + std::string(8, '\xff') + four(3) + soon});
      }
      // A whole nanosecond or more.
      if (IsBucket(spec.algorithm)) foreign.push_back({prefix + soon + four(10) + soon});
    }
    for (const std::vector<std::string>& items : foreign) {
      Store(spec, items);
      ExpectDamaged(spec);
    }
  }
}

}  // namespace lua_damage_test
}  // namespace headgate::redis_host
