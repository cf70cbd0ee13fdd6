// Counters in the memory store: kept, bounded, evicted, swept and saved like buckets.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "headgate/store/memory.h"
#include "headgate/store/memory_rig.h"

namespace headgate::store {
namespace memory_counters_test {

using algorithm::Counter;
using algorithm::CounterAnswer;
using algorithm::CounterChange;
using algorithm::CounterExpiry;
using algorithm::Decision;
using base::Decimal;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = CounterAnswer::Outcome;

constexpr Instant kNow = Instant::FromNanos(1'790'000'000'000'000'000);

base::Hash128 KeyOf(MemoryStore& store, std::string_view name) {
  return base::HashBytes(store.hash_secret(), base::KeyKind::kRaw, name);
}

CounterChange Expiring(milliseconds time) {
  return {.expiry = {.kind = CounterExpiry::Kind::kIn, .time = time}};
}

CounterAnswer Count(MemoryStore& store, std::string_view name, const CounterChange& change = {},
                    Instant now = kNow) {
  auto answer = store.Increment(KeyOf(store, name), change, now);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(CounterAnswer{});
}

int64_t ValueOf(MemoryStore& store, std::string_view name, Instant now = kNow) {
  const auto counter = store.FindCounter(KeyOf(store, name), now);
  return counter ? counter->value.units : -1;
}

LimitHandle Limit(MemoryStore& store) {
  return *store.limits().Intern(*algorithm::Limit::Make({.requests = 10, .period = seconds(10)}));
}

Decision Ask(MemoryStore& store, std::string_view name, Operation operation = Operation::kTake,
             Instant now = kNow) {
  const LimitHandle limit = Limit(store);
  const TakeRequest request{
      .key = KeyOf(store, name), .limit = limit.get(), .operation = operation};
  Decision decision;
  store.Take({&request, 1}, {&decision, 1}, now);
  return decision;
}

TEST(MemoryCounters, CountAndExpire) {
  MemoryStore store({.max_buckets = 1000});
  EXPECT_EQ(Count(store, "a", Expiring(seconds(1))).value, Decimal::Integer(1));
  EXPECT_EQ(Count(store, "a").value, Decimal::Integer(2));
  EXPECT_EQ(store.stats().buckets, 1u);
  EXPECT_EQ(ValueOf(store, "a", kNow + seconds(1) - base::Duration(1)), 2);
  EXPECT_EQ(ValueOf(store, "a", kNow + seconds(1)), -1);
  EXPECT_EQ(store.stats().buckets, 0u) << "found to have expired, so removed";
}

TEST(MemoryCounters, WithoutAnExpiryAndWithAValueOfZeroStay) {
  MemoryStore store({.max_buckets = 1000});
  Count(store, "zero", {.by = Decimal::Integer(0)});
  Count(store, "one", Expiring(seconds(1)));
  EXPECT_EQ(store.Sweep(base::kInstantMax), 1u);
  EXPECT_EQ(ValueOf(store, "zero", base::kInstantMax), 0);
}

TEST(MemoryCounters, ARefusedChangeCreatesNothing) {
  MemoryStore store({.max_buckets = 1000});
  EXPECT_EQ(Count(store, "a", {.most = Decimal::Integer(0)}).outcome, Outcome::kRefused);
  EXPECT_EQ(store.stats().buckets, 0u);
}

TEST(MemoryCounters, AnExpiryThatHasPassedRemovesThem) {
  MemoryStore store({.max_buckets = 1000});
  Count(store, "a");
  const CounterChange past{.expiry = {.kind = CounterExpiry::Kind::kAt, .time = milliseconds(1)}};
  EXPECT_EQ(Count(store, "a", past).value, Decimal::Integer(2));
  EXPECT_EQ(store.stats().buckets, 0u);
}

TEST(MemoryCounters, AKeyHoldsABucketOrACounter) {
  MemoryStore store({.max_buckets = 1000});
  // A used bucket is full again after a second.
  EXPECT_TRUE(Ask(store, "bucket").allowed);
  EXPECT_EQ(Count(store, "bucket").outcome, Outcome::kWrongType);
  EXPECT_EQ(Ask(store, "bucket", Operation::kPeek).remaining, 8u);
  EXPECT_EQ(Count(store, "bucket", {}, kNow + seconds(1)).value, Decimal::Integer(1));

  Count(store, "counter", Expiring(seconds(1)));
  for (const Operation operation : {Operation::kTake, Operation::kPeek}) {
    const Decision decision = Ask(store, "counter", operation);
    EXPECT_FALSE(decision.allowed);
    EXPECT_EQ(decision.limit, 0u);
    EXPECT_TRUE(decision.never_fits());
  }
  EXPECT_EQ(ValueOf(store, "counter"), 1);
  EXPECT_EQ(Ask(store, "counter", Operation::kTake, kNow + seconds(1)).remaining, 9u);
}

TEST(MemoryCounters, AJoinedGroupWithACounterTakesNothing) {
  MemoryStore store({.max_buckets = 1000});
  Count(store, "counter");
  const LimitHandle limit = Limit(store);
  std::array<TakeRequest, 2> group{
      TakeRequest{.key = KeyOf(store, "bucket"), .limit = limit.get()},
      TakeRequest{
          .key = KeyOf(store, "counter"), .limit = limit.get(), .joined = Joined::kOtherRule}};
  std::array<Decision, 2> decisions;
  for (const size_t i : {0u, 1u}) {
    store.Take(base::Strided<const TakeRequest>(group), base::Strided<Decision>(decisions), kNow);
    EXPECT_EQ(decisions[i == 0 ? 1 : 0].limit, 0u);
    EXPECT_EQ(decisions[i == 0 ? 0 : 1].remaining, 10u);
    EXPECT_EQ(Ask(store, "bucket", Operation::kPeek).remaining, 9u);
    EXPECT_EQ(ValueOf(store, "counter"), 1);
    std::swap(group[0].key, group[1].key);
  }
}

TEST(MemoryCounters, AResetUnderItsLimitRemovesACounter) {
  for (const uint64_t buckets : {10u, 1000u}) {
    MemoryStore store({.max_buckets = buckets});
    Count(store, "a");
    const LimitHandle limit = store.LimitOf(KeyOf(store, "a"));
    ASSERT_TRUE(limit);
    const TakeRequest reset{
        .key = KeyOf(store, "a"), .limit = limit.get(), .operation = Operation::kReset};
    Decision decision;
    store.Take({&reset, 1}, {&decision, 1}, kNow);
    EXPECT_EQ(ValueOf(store, "a"), -1);
    EXPECT_EQ(store.stats().buckets, 0u);
  }
}

// Counters that never expire lose most, so in one class with the buckets they would displace all of
// these.
TEST(MemoryCounters, DisplaceNoBucketsOfClientsBeyondTheirHalf) {
  constexpr uint64_t kBuckets = 2000;
  MemoryStore store({.max_buckets = kBuckets});
  for (uint64_t i = 0; i < kBuckets; ++i) Ask(store, "bucket " + std::to_string(i));
  for (uint64_t i = 0; i < 10 * kBuckets; ++i) Count(store, "counter " + std::to_string(i));
  EXPECT_EQ(store.stats().buckets, kBuckets);
  uint64_t left = 0;
  for (uint64_t i = 0; i < kBuckets; ++i)
    left += Ask(store, "bucket " + std::to_string(i), Operation::kPeek).remaining == 9 ? 1u : 0u;
  EXPECT_GE(left, kBuckets * 45 / 100);
  EXPECT_LE(left, kBuckets * 55 / 100);
}

TEST(MemoryCounters, TheOneThatExpiresFirstIsEvicted) {
  MemoryStore store({.max_buckets = 10});
  for (int i = 0; i < 10; ++i)
    Count(store, std::to_string(i),
          i == 7   ? Expiring(seconds(9))
          : i == 3 ? Expiring(seconds(8))
                   : CounterChange{});
  Count(store, "new");
  EXPECT_EQ(ValueOf(store, "3"), -1);
  Count(store, "newer");
  EXPECT_EQ(ValueOf(store, "7"), -1);
  EXPECT_EQ(store.stats().evictions, 2u);
  EXPECT_EQ(ValueOf(store, "newer"), 1);
}

TEST(MemoryCounters, TheLimitsOfClientsDoNotRetireThem) {
  MemoryStore store({.max_buckets = 1000, .max_limits = 2});
  Count(store, "a");
  for (uint64_t i = 1; i < 100; ++i) {
    ASSERT_TRUE(
        store.limits().Intern(*algorithm::Limit::Make({.requests = i, .period = seconds(7)})).ok());
  }
  store.Sweep(kNow);
  store.Sweep(kNow);
  EXPECT_EQ(ValueOf(store, "a"), 1);
}

TEST(MemoryCounters, AreExactUnderManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  MemoryStore store({.max_buckets = 100'000});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) Count(store, std::to_string(i % 10));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ValueOf(store, std::to_string(i)), kThreads * kEach / 10);
}

TEST(MemoryCounters, ASnapshotKeepsValueAndExpiry) {
  MemoryStore store({.max_buckets = 1000});
  Count(store, "zero", {.by = Decimal::Integer(0)});
  Count(store, "large", {.by = Decimal::Max()});
  Count(store, "least", {.by = Decimal::Min()});
  Count(store, "half", {.kind = CounterChange::Kind::kDecimal, .by = {.units = 5, .scale = 1}});
  Count(store, "soon", Expiring(seconds(60)));
  Count(store, "past", Expiring(seconds(1)));
  Ask(store, "bucket");
  const std::string bytes = store.Snapshot(kNow);

  MemoryStore next({.max_buckets = 5000, .max_limits = 2});
  ASSERT_TRUE(next.Restore(bytes, kNow + seconds(1)).ok());
  EXPECT_EQ(next.stats().rebased, 0u);
  EXPECT_EQ(next.stats().buckets, 5u);
  const Instant now = kNow + seconds(2);
  EXPECT_EQ(ValueOf(next, "zero", now), 0);
  EXPECT_EQ(ValueOf(next, "large", now), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ValueOf(next, "least", now), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(next.FindCounter(KeyOf(next, "half"), now)->value, (Decimal{.units = 5, .scale = 1}));
  EXPECT_EQ(next.FindCounter(KeyOf(next, "half"), now)->expires_at, Counter::kNeverExpires);
  EXPECT_EQ(next.FindCounter(KeyOf(next, "soon"), now)->expires_at, kNow + seconds(60));
  EXPECT_EQ(ValueOf(next, "past", now), -1);
  EXPECT_EQ(Count(next, "large", {}, now).outcome, Outcome::kRefused);
}

TEST(MemoryCounters, AfterTheClockWasSetBackTheyExpireAfterTheTimeThatWasLeft) {
  constexpr std::chrono::hours kSetBack{24 * 30};
  MemoryStore store({.max_buckets = 1000});
  Count(store, "forever");
  Count(store, "minute", Expiring(seconds(60)));
  const std::string bytes = store.Snapshot(kNow + seconds(20));

  MemoryStore next({.max_buckets = 1000});
  const Instant now = kNow + seconds(20) - kSetBack;
  ASSERT_TRUE(next.Restore(bytes, now).ok());
  EXPECT_EQ(next.stats().rebased, 1u);
  EXPECT_EQ(ValueOf(next, "minute", now), 1);
  EXPECT_EQ(next.FindCounter(KeyOf(next, "minute"), now)->expires_at, now + seconds(40));
  EXPECT_EQ(next.FindCounter(KeyOf(next, "forever"), now)->expires_at, Counter::kNeverExpires);
  // The clock is ahead, or is behind by less than clocks differ: the expiry stays.
  for (const auto change : {milliseconds(3000), milliseconds(-900)}) {
    MemoryStore same({.max_buckets = 1000});
    ASSERT_TRUE(same.Restore(bytes, kNow + seconds(20) + change).ok());
    EXPECT_EQ(same.stats().rebased, 0u);
    EXPECT_EQ(same.FindCounter(KeyOf(same, "minute"), kNow)->expires_at, kNow + seconds(60));
  }
}

TEST(MemoryCounters, ASnapshotWithoutThemCanBeReadByEarlierPrograms) {
  MemoryStore store({.max_buckets = 1000});
  Ask(store, "bucket");
  EXPECT_EQ(store.Snapshot(kNow)[8], 2);
  Count(store, "counter");
  EXPECT_EQ(store.Snapshot(kNow)[8], 3);
}

}  // namespace memory_counters_test
}  // namespace headgate::store
