#include "headgate/store/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "headgate/store/memory_rig.h"

namespace headgate::store {
namespace memory_test {

using algorithm::Algorithm;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

TEST(MemoryStore, DecidesAsTheAlgorithmDoes) {
  MemoryRig test;
  const LimitHandle limit = test.Make({.requests = 1, .period = 10s, .burst = 5});
  for (uint64_t left = 5; left-- > 0;) EXPECT_EQ(test.Ask(7, limit, kStart).remaining, left);
  const Decision denied = test.Ask(7, limit, kStart);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, 10s);
  EXPECT_EQ(denied.reset_after, 50s);
  EXPECT_TRUE(test.Ask(7, limit, kStart + 10s).allowed);
}

TEST(MemoryStore, ALookCreatesNothing) {
  MemoryRig test;
  const LimitHandle limit = test.Make({.requests = 5, .period = 10s});
  EXPECT_TRUE(test.Ask(1, limit, kStart, 0).allowed);
  EXPECT_TRUE(test.Ask(1, limit, kStart, 5, Operation::kPeek).allowed);
  EXPECT_FALSE(test.Ask(1, limit, kStart, 6).allowed);
  EXPECT_EQ(test.buckets(), 0u);
}

TEST(MemoryStore, ALookAnswersAsATakeWouldAndConsumesNothing) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    MemoryRig test;
    const LimitHandle limit = test.Make({.algorithm = algorithm, .requests = 5, .period = 10s});
    test.Ask(1, limit, kStart, 2);
    const Decision peeked = test.Ask(1, limit, kStart + 1s, 2, Operation::kPeek);
    EXPECT_EQ(test.Ask(1, limit, kStart + 1s, 2, Operation::kPeek), peeked) << Name(algorithm);
    EXPECT_EQ(test.Ask(1, limit, kStart + 1s, 2), peeked) << Name(algorithm);
  }
}

// The takes before the denial are undone, so the denied one would fit when it is counted.
TEST(MemoryStore, AGroupThatNamesABucketTwiceIsDeniedIfBothCostsDoNotFit) {
  for (const bool count_denied : {false, true}) {
    MemoryRig test;
    const LimitHandle limit = test.Make({.algorithm = Algorithm::kFixedWindow,
                                         .requests = 5,
                                         .period = 10s,
                                         .count_denied = count_denied});
    std::array group{test.Request(1, limit, 4), test.Request(1, limit, 2)};
    group[1].joined = Joined::kOtherRule;
    std::array<Decision, 2> decisions;
    test.store.Take(group, decisions, kStart);
    EXPECT_FALSE(decisions[1].allowed) << count_denied;
    EXPECT_LT(decisions[1].remaining, 2u) << count_denied;
    EXPECT_EQ(test.Peek(1, limit, kStart).remaining, count_denied ? 3u : 5u) << count_denied;
  }
}

TEST(MemoryStore, ABlockThatAGroupBeginsInANewBucketStays) {
  MemoryRig test;
  algorithm::BlockLengths minute;
  minute.Add(algorithm::BlockLengths::Seconds(60));
  const LimitHandle limit = test.Make({.requests = 5, .period = 10s, .block = minute});
  std::array group{test.Request(1, limit, 3), test.Request(1, limit, 3)};
  group[1].joined = Joined::kOtherRule;
  std::array<Decision, 2> decisions;
  test.store.Take(group, decisions, kStart);
  EXPECT_EQ(decisions[1].blocked_for, 60s);
  EXPECT_FALSE(test.Ask(1, limit, kStart + 59s).allowed);
  EXPECT_TRUE(test.Ask(1, limit, kStart + 60s, 5).allowed);
}

// A log counts less than such a cost, because its sum saturates.
TEST(MemoryStore, AHugeCostInALogThatMayBeOverdrawnIsUndoneAsItWasCounted) {
  MemoryRig test;
  const LimitHandle log = test.Make(
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 10s, .overdraw = true});
  const LimitHandle one = test.Make({.requests = 1, .period = 10s});
  constexpr algorithm::Cost kHuge = uint64_t{1} << 40;
  ASSERT_TRUE(test.Ask(1, log, kStart, 2).allowed);
  EXPECT_TRUE(test.Ask(1, log, kStart + 1s, kHuge, Operation::kPeek).allowed);
  EXPECT_EQ(test.Peek(1, log, kStart + 1s).remaining, 3u);

  std::array group{test.Request(1, log, kHuge), test.Request(2, one, kHuge)};
  group[1].joined = Joined::kOtherRule;
  std::array<Decision, 2> decisions;
  test.store.Take(group, decisions, kStart + 1s);
  EXPECT_FALSE(decisions[1].allowed);
  EXPECT_EQ(test.Peek(1, log, kStart + 1s).remaining, 3u);
}

TEST(MemoryStore, ABucketThatIsAsIfNeverUsedIsAbsent) {
  MemoryRig test;
  const LimitHandle limit = test.Make({.requests = 5, .period = 10s});
  test.Ask(1, limit, kStart);
  EXPECT_EQ(test.buckets(), 1u);
  test.Ask(1, limit, kStart, 1, Operation::kRefund);
  EXPECT_EQ(test.buckets(), 0u);
  test.Ask(1, limit, kStart, 3);
  test.Ask(1, limit, kStart, 1, Operation::kReset);
  EXPECT_EQ(test.buckets(), 0u);
  test.Ask(1, limit, kStart);
  EXPECT_EQ(test.store.Sweep(kStart + 1s), 0u);
  EXPECT_EQ(test.store.Sweep(kStart + 2s), 1u);
}

TEST(MemoryStore, HoldsAsManyBucketsAsItMayWithoutForgettingOne) {
  for (const uint64_t max : {1u, 10u, 60u, 61u, 1000u, 20'000u}) {
    MemoryRig test(max);
    const LimitHandle limit = test.Make({.requests = 1, .period = 1h});
    for (uint64_t key = 0; key < max; ++key) ASSERT_TRUE(test.Ask(key, limit, kStart).allowed);
    for (uint64_t key = 0; key < max; ++key)
      ASSERT_FALSE(test.Ask(key, limit, kStart).allowed) << key << " of " << max;
    EXPECT_EQ(test.buckets(), max);
    EXPECT_EQ(test.store.stats().evictions, 0u);
  }
}

TEST(MemoryStore, WhenFullForgetsTheBucketThatLosesLeastAndCountsTheLoss) {
  MemoryRig test(3);
  const LimitHandle limit = test.Make({.requests = 10, .period = 10s});
  test.Ask(1, limit, kStart, 9);
  test.Ask(2, limit, kStart, 2);
  test.Ask(3, limit, kStart, 8);
  test.Ask(4, limit, kStart, 5);
  EXPECT_EQ(test.store.stats().evictions, 1u);
  EXPECT_EQ(test.store.stats().evicted_requests, 2u);
  EXPECT_EQ(test.Ask(1, limit, kStart, 0).remaining, 1u);
  EXPECT_EQ(test.Ask(2, limit, kStart, 0).remaining, 10u);
  EXPECT_EQ(test.Ask(3, limit, kStart, 0).remaining, 2u);
  EXPECT_EQ(test.Ask(4, limit, kStart, 0).remaining, 5u);
}

TEST(MemoryStore, AFloodOfNewKeysDoesNotWashOutTheExhaustedOnes) {
  constexpr uint64_t kMax = 5000;
  MemoryRig test(kMax);
  const LimitHandle limit = test.Make({.requests = 100, .period = 100s});
  for (uint64_t key = 0; key < 500; ++key) test.Ask(key, limit, kStart, 100);
  for (uint64_t key = 1000; key < 1000 + 20 * kMax; ++key) test.Ask(key, limit, kStart);
  for (uint64_t key = 0; key < 500; ++key)
    ASSERT_FALSE(test.Ask(key, limit, kStart).allowed) << key;
  EXPECT_LE(test.buckets(), kMax);
  EXPECT_EQ(test.store.stats().evicted_requests, test.store.stats().evictions);
}

TEST(MemoryStore, ExpiredBucketsMakeRoomWithoutLoss) {
  MemoryRig test(100);
  const LimitHandle limit = test.Make({.requests = 1, .period = 1s});
  for (uint64_t key = 0; key < 10'000; ++key) {
    test.Ask(key, limit, kStart + base::Duration(static_cast<int64_t>(key / 50) * 1'000'000'000));
  }
  EXPECT_EQ(test.store.stats().evictions, 0u);
}

TEST(MemoryStore, AJoinedGroupConsumesEverywhereOrNowhere) {
  MemoryRig test;
  const LimitHandle per_second = test.Make({.requests = 2, .period = 1s});
  const LimitHandle per_hour =
      test.Make({.algorithm = Algorithm::kSlidingWindowLog, .requests = 3, .period = 1h});
  const LimitHandle per_day =
      test.Make({.algorithm = Algorithm::kFixedWindow, .requests = 9, .period = 24h});
  const auto ask = [&](Instant now) {
    const std::array<TakeRequest, 3> group{
        TakeRequest{.key = test.Key(1), .limit = per_second.get()},
        TakeRequest{.key = test.Key(2), .limit = per_hour.get(), .joined = Joined::kSameRule},
        TakeRequest{.key = test.Key(3), .limit = per_day.get(), .joined = Joined::kSameRule},
    };
    std::array<Decision, 3> decisions;
    test.store.Take(group, decisions, now);
    return decisions;
  };
  EXPECT_TRUE(ask(kStart)[0].allowed);
  EXPECT_TRUE(ask(kStart)[0].allowed);
  const auto denied = ask(kStart);
  EXPECT_FALSE(denied[0].allowed);
  EXPECT_TRUE(denied[1].allowed);
  EXPECT_EQ(denied[1].remaining, 1u);
  EXPECT_EQ(denied[2].remaining, 7u);
  EXPECT_TRUE(ask(kStart + 1s)[0].allowed);
  const auto denied_by_second = ask(kStart + 2s);
  EXPECT_TRUE(denied_by_second[0].allowed);
  EXPECT_EQ(denied_by_second[0].remaining, 2u);
  EXPECT_FALSE(denied_by_second[1].allowed);
  EXPECT_EQ(test.Ask(3, per_day, kStart + 2s, 0).remaining, 6u);
}

TEST(MemoryStore, AGroupOfOneBucketTwiceCountsBoth) {
  MemoryRig test;
  const LimitHandle limit = test.Make({.requests = 3, .period = 1h});
  const std::array<TakeRequest, 2> group{
      TakeRequest{.key = test.Key(1), .limit = limit.get(), .cost = 2},
      TakeRequest{
          .key = test.Key(1), .limit = limit.get(), .cost = 2, .joined = Joined::kSameRule}};
  std::array<Decision, 2> decisions;
  test.store.Take(group, decisions, kStart);
  EXPECT_FALSE(decisions[1].allowed);
  EXPECT_EQ(test.Ask(1, limit, kStart, 0).remaining, 3u);
}

TEST(MemoryStore, AChangeOfLimitTakesEffectAtItsMomentNotAtTheNextRequest) {
  MemoryRig test;
  const LimitHandle slow = test.Make({.requests = 1, .period = 10s, .burst = 5});
  const LimitHandle fast = test.Make({.requests = 10, .period = 10s, .burst = 5});
  for (int i = 0; i < 5; ++i) test.Ask(1, slow, kStart);
  const LimitChange change{slow.get(), kStart + 20s};
  // Two tokens at the old rate until 20 s, then one at the new rate.
  EXPECT_EQ(test.Ask(1, fast, kStart + 21s, 0, Operation::kTake, {&change, 1}).remaining, 3u);
}

TEST(MemoryStore, LoweringAndRaisingALimitWhileNobodyAsksMintsNothing) {
  MemoryRig test;
  const LimitHandle hundred =
      test.Make({.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 100s});
  const LimitHandle ten =
      test.Make({.algorithm = Algorithm::kTokenBucket, .requests = 10, .period = 100s});
  const LimitHandle again = *test.store.limits().Intern(hundred->limit, 1);
  test.Ask(1, hundred, kStart, 50);
  const std::array<LimitChange, 2> history{LimitChange{hundred.get(), kStart + 1s},
                                           LimitChange{ten.get(), kStart + 1s}};
  EXPECT_EQ(test.Ask(1, again, kStart + 1s, 0, Operation::kTake, history).remaining, 10u);
  // A key that is used only after the changes, even at the same instant, is unaffected by the lower
  // limit.
  EXPECT_TRUE(test.Ask(2, again, kStart + 1s, 50, Operation::kTake, history).allowed);
  EXPECT_TRUE(test.Ask(2, again, kStart + 1s, 50, Operation::kTake, history).allowed);
}

TEST(MemoryStore, ALookUnderAnotherLimitLeavesTheBucketWhatItIs) {
  MemoryRig test;
  const LimitHandle ten = test.Make({.requests = 10, .period = 60s});
  const LimitHandle two = test.Make({.requests = 10, .period = 60s, .burst = 2});
  test.Ask(1, ten, kStart);
  EXPECT_EQ(test.Ask(1, two, kStart, 0).remaining, 2u);
  EXPECT_EQ(test.Ask(1, two, kStart, 1, Operation::kPeek).remaining, 1u);
  EXPECT_EQ(test.Ask(1, ten, kStart, 0).remaining, 9u);
}

TEST(MemoryStore, ALimitOfNothingLeavesTheBucketForWhenItIsRaised) {
  MemoryRig test;
  const LimitHandle some = test.Make({.requests = 10, .period = 100s});
  const LimitHandle none = test.Make({.requests = 0, .period = 100s});
  test.Ask(1, some, kStart, 10);
  EXPECT_TRUE(test.Ask(1, none, kStart).never_fits());
  EXPECT_FALSE(test.Ask(1, some, kStart).allowed);
  test.Ask(1, none, kStart, 1, Operation::kReset);
  EXPECT_TRUE(test.Ask(1, some, kStart).allowed);
}

TEST(MemoryStore, IsExactUnderManyThreads) {
  constexpr int kThreads = 8;
  constexpr uint64_t kLimit = 3000;
  MemoryRig test(200);
  const std::array<LimitHandle, 5> limits{
      test.Make({.requests = kLimit, .period = 1h}),
      test.Make({.algorithm = Algorithm::kLeakyBucketQueue,
                 .requests = kLimit,
                 .period = 1h,
                 .burst = kLimit - 1}),
      test.Make({.algorithm = Algorithm::kFixedWindow, .requests = kLimit, .period = 1h}),
      test.Make({.algorithm = Algorithm::kSlidingWindowCounter, .requests = kLimit, .period = 1h}),
      test.Make({.algorithm = Algorithm::kSlidingWindowLog, .requests = kLimit, .period = 1h})};
  std::array<std::atomic<uint64_t>, limits.size()> admitted{};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::array<TakeRequest, 10> batch;
      std::array<Decision, 10> decisions;
      for (int round = 0; round < 500; ++round) {
        for (size_t i = 0; i < batch.size(); ++i) {
          batch[i] = {.key = test.Key(i % limits.size()), .limit = limits[i % limits.size()].get()};
        }
        test.store.Take(batch, decisions, kStart);
        for (size_t i = 0; i < batch.size(); ++i)
          admitted[i % limits.size()] += decisions[i].allowed ? 1u : 0u;
        test.store.Sweep(kStart);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < limits.size(); ++i)
    EXPECT_EQ(admitted[i].load(), kLimit) << Name(limits[i]->limit.algorithm());
}

TEST(MemoryStore, IsExactWhereThreadsInsertFindAndRemoveSpilledBuckets) {
  constexpr uint64_t kKeys = 950;
  MemoryRig test(1000);
  const LimitHandle limit = test.Make({.requests = 10, .period = 1h});
  std::atomic<uint64_t> admitted{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 30'000; ++i)
        admitted += test.Ask(random() % kKeys, limit, kStart).allowed ? 1u : 0u;
    });
  }
  for (std::thread& thread : threads) thread.join();
  // 120,000 requests over 950 keys: each key is requested far more often than ten times.
  EXPECT_EQ(admitted.load(), kKeys * 10);
  EXPECT_EQ(test.store.stats().evictions, 0u);
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The memory for this many buckets in a table of the default size, divided by their number.
uint64_t BytesPerBucket(uint64_t buckets) {
  const uint64_t before = ResidentBytes();
  MemoryRig test(MemoryOptions().max_buckets);
  const LimitHandle limit = test.Make({.requests = 1, .period = 1h});
  for (uint64_t key = 0; key < buckets; ++key) test.Ask(key, limit, kStart);
  EXPECT_EQ(test.buckets(), buckets);
  return (ResidentBytes() - before) / buckets;
}

TEST(MemoryStore, ATableOfTheDefaultSizeTakesMemoryInProportionToItsBuckets) {
  // 57 to 114 bytes each, and 200 KB for the numbers of limits. A table whose buckets are spread
  // over all of it takes a page, 4,096 bytes, for each of the first ones.
  EXPECT_LE(BytesPerBucket(10'000), 114u + 20u);
  EXPECT_LE(BytesPerBucket(100'000), 114u + 2u);
}

TEST(MemoryStore, ATableThatGrowsKeepsEveryBucketWithItsTimesAndHits) {
  MemoryRig test(200'000);
  const std::array<LimitHandle, 2> limits{
      test.Make({.requests = 3, .period = 1h}),
      test.Make({.algorithm = Algorithm::kSlidingWindowLog, .requests = 3, .period = 1h})};
  constexpr uint64_t kKeys = 20'000;
  const auto ask = [&](uint64_t key) { return test.Ask(key, limits[key % 2], kStart).allowed; };
  // Each bucket is used while the table is small, and again each time it is larger.
  for (uint64_t keys = 1; keys <= kKeys; ++keys) {
    ASSERT_TRUE(ask(keys));
    if (keys % 5000 != 0) continue;
    for (uint64_t key = 1; key <= 5000; ++key) ASSERT_EQ(ask(key), keys <= 10'000) << key;
  }
  for (uint64_t key = 5001; key <= kKeys; ++key) {
    ASSERT_TRUE(ask(key) && ask(key)) << key;
    ASSERT_FALSE(ask(key)) << key;
  }
  EXPECT_EQ(test.buckets(), kKeys);
  EXPECT_EQ(test.store.stats().evictions, 0u);
  EXPECT_EQ(test.store.Sweep(kStart + 1h), kKeys);
  EXPECT_EQ(test.store.stats().hit_blocks, 0u);
}

TEST(MemoryStore, ABucketThatIsRememberedStaysSoWhenTheTableGrows) {
  MemoryRig test(200'000);
  const LimitHandle hundred = test.Make({.requests = 100, .period = 100s});
  const LimitHandle ten = test.Make({.requests = 10, .period = 100s});
  const LimitHandle again = *test.store.limits().Intern(hundred->limit, 1);
  constexpr uint64_t kRemembered = 2000;
  for (uint64_t key = 0; key < kRemembered; ++key) {
    test.Ask(key, hundred, kStart, 85);
    test.Ask(key, ten, kStart, 0, Operation::kTake);
    test.Ask(key, ten, kStart, 1);
    test.Ask(key, ten, kStart, 1, Operation::kRefund);
  }
  for (uint64_t key = 10'000; key < 30'000; ++key) test.Ask(key, hundred, kStart);
  // 84 of the 85 were used under the first limit until 84 s have passed.
  for (uint64_t key = 0; key < kRemembered; ++key)
    ASSERT_LT(test.Ask(key, again, kStart + 50s, 0).remaining, 100u) << key;
}

TEST(MemoryStore, IsExactWhereThreadsDecideWhileTheTableGrows) {
  constexpr uint64_t kKeys = 40'000, kLimit = 3;
  MemoryRig test(MemoryOptions().max_buckets);
  const LimitHandle limit = test.Make({.requests = kLimit, .period = 1h});
  std::atomic<uint64_t> admitted{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::array<TakeRequest, 2> batch;
      std::array<Decision, 2> decisions;
      // More and more keys: while a new key makes the table grow, the other threads use old ones.
      for (uint64_t keys = 1; keys <= kKeys; ++keys) {
        for (TakeRequest& request : batch) request = test.Request(random() % keys, limit, 1);
        const bool group = keys % 4 == 0;
        if (group) batch[1].joined = Joined::kSameRule;
        test.store.Take(batch, decisions, kStart);
        const uint64_t passed = decisions[0].allowed + decisions[1].allowed;
        admitted += group && passed < 2 ? 0 : passed;
        admitted += test.Ask(random() % keys, limit, kStart).allowed ? 1u : 0u;
      }
      for (uint64_t i = 0; i < kLimit * kKeys; ++i)
        admitted += test.Ask(i % kKeys, limit, kStart).allowed ? 1u : 0u;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted.load(), kKeys * kLimit);
  EXPECT_EQ(test.buckets(), kKeys);
  EXPECT_EQ(test.store.stats().evictions, 0u);
}

TEST(MemoryStore, LogsAreBoundedAndDenyRatherThanForget) {
  MemoryRig test(4);
  const LimitHandle limit = test.Make({.algorithm = Algorithm::kSlidingWindowLog,
                                       .requests = algorithm::kLogRequestsMax,
                                       .period = 1h});
  uint64_t admitted = 0;
  for (int64_t i = 0; i < 150'000; ++i)
    admitted += test.Ask(1, limit, kStart + base::Duration(i)).allowed ? 1u : 0u;
  EXPECT_EQ(admitted, algorithm::kLogRequestsMax);
  EXPECT_LE(test.store.stats().hit_blocks, test.store.stats().hit_blocks_max);
  // A second log of this size finds hardly any room: it admits fewer than its limit, never more.
  for (int64_t i = 0; i < 100; ++i) test.Ask(2, limit, kStart + base::Duration(150'000 + i));
  EXPECT_GT(test.store.stats().hits_refused, 0u);
  EXPECT_FALSE(test.Ask(1, limit, kStart + 1s).allowed);
}

TEST(MemoryStore, UnusedLimitsAreSwept) {
  MemoryRig test;
  const LimitHandle kept = test.Make({.requests = 1, .period = 1h});
  {
    const LimitHandle used = test.Make({.requests = 2, .period = 1h});
    const LimitHandle unused = test.Make({.requests = 3, .period = 1h});
    test.Ask(1, used, kStart);
  }
  EXPECT_EQ(test.store.stats().limits, 3u);
  for (int i = 0; i < 2; ++i) test.store.Sweep(kStart);
  EXPECT_EQ(test.store.stats().limits, 2u);
  for (int i = 0; i < 2; ++i) test.store.Sweep(kStart + 1h);
  EXPECT_EQ(test.store.stats().limits, 1u);
}

// ---- Snapshots

const std::array<LimitSpec, 7> kAllAlgorithms{
    LimitSpec{.requests = 7, .period = 10s, .burst = 20},
    LimitSpec{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 7, .period = 10s, .burst = 20},
    LimitSpec{
        .algorithm = Algorithm::kFixedWindow, .requests = 30, .period = 20s, .count_denied = true},
    LimitSpec{.algorithm = Algorithm::kFixedWindow,
              .requests = 30,
              .period = 20s,
              .align = algorithm::Align::kFirstHit},
    LimitSpec{.algorithm = Algorithm::kFixedWindow,
              .requests = 30,
              .align = algorithm::Align::kCalendarDay,
              .zone = base::TimeZone::Load("Pacific/Auckland").value()},
    LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 30, .period = 20s},
    LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 30, .period = 20s}};

TEST(Snapshot, RestoresEveryBucketIntoATableOfAnySize) {
  for (const uint64_t max_after : {700u, 5000u}) {
    MemoryRig before(700), after(max_after, 99);
    for (uint64_t key = 0; key < 600; ++key) {
      const LimitHandle limit = before.Make(kAllAlgorithms[key % kAllAlgorithms.size()]);
      for (uint64_t i = 0; i <= key % 9; ++i)
        before.Ask(key, limit, kStart + base::Duration(static_cast<int64_t>(i)));
    }
    ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart + 1s), kStart + 1s).ok());
    EXPECT_EQ(after.buckets(), before.buckets());
    for (uint64_t key = 0; key < 600; ++key) {
      const LimitSpec& spec = kAllAlgorithms[key % kAllAlgorithms.size()];
      const Decision expected = before.Ask(key, before.Make(spec), kStart + 2s);
      EXPECT_EQ(after.Ask(key, after.Make(spec), kStart + 2s), expected) << key;
    }
  }
}

TEST(Snapshot, WrittenWhileTheTableGrowsHasEachBucketInItsLatestState) {
  MemoryRig before(200'000), after(200'000, 99);
  // More than the first piece has room for.
  constexpr uint64_t kFirst = 30'000;
  const LimitHandle limit = before.Make({.requests = 9, .period = 1h});
  for (uint64_t key = 0; key < kFirst; ++key) before.Ask(key, limit, kStart);
  std::string bytes;
  bool grown = false;
  before.store.WriteSnapshot(kStart, [&](std::string_view piece) {
    bytes.append(piece);
    if (std::exchange(grown, true)) return;
    for (uint64_t key = kFirst; key < 3 * kFirst; ++key) before.Ask(key, limit, kStart);
  });
  ASSERT_TRUE(grown);
  ASSERT_TRUE(after.store.Restore(bytes, kStart).ok());
  const LimitHandle restored = after.Make({.requests = 9, .period = 1h});
  for (uint64_t key = 0; key < kFirst; ++key)
    ASSERT_EQ(after.Ask(key, restored, kStart, 0).remaining, 8u) << key;
  // A bucket that was written twice is there once, so that resetting it leaves none.
  for (uint64_t key = 0; key < kFirst; ++key)
    after.Ask(key, restored, kStart, 1, Operation::kReset);
  for (uint64_t key = 0; key < kFirst; ++key)
    ASSERT_EQ(after.Ask(key, restored, kStart, 0).remaining, 9u) << key;
}

TEST(Snapshot, OfAHalfFullTableIsRestoredToTheLastBucket) {
  constexpr uint64_t kBuckets = 50'000;
  MemoryRig before(2 * kBuckets), after(2 * kBuckets, 99);
  const LimitSpec spec{.requests = 1, .period = 1h};
  const LimitHandle limit = before.Make(spec);
  for (uint64_t key = 0; key < kBuckets; ++key) before.Ask(key, limit, kStart);
  ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart), kStart).ok());
  EXPECT_EQ(after.buckets(), kBuckets);
  EXPECT_EQ(after.store.stats().evictions, 0u);
}

TEST(Snapshot, LeavesOutWhatHasExpired) {
  MemoryRig before, after;
  before.Ask(1, before.Make({.requests = 1, .period = 1s}), kStart);
  ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart), kStart + 1s).ok());
  EXPECT_EQ(after.buckets(), 0u);
}

TEST(Snapshot, IsRefusedWhenCutOffAnywhere) {
  MemoryRig before;
  before.Ask(1, before.Make(kAllAlgorithms[0]), kStart);
  before.Ask(2, before.Make(kAllAlgorithms[5]), kStart);
  const std::string bytes = before.store.Snapshot(kStart);
  for (size_t size = 0; size < bytes.size(); ++size) {
    MemoryRig after;
    EXPECT_EQ(after.store.Restore(bytes.substr(0, size), kStart).code(),
              absl::StatusCode::kDataLoss)
        << size;
    EXPECT_EQ(after.buckets(), 0u);
  }
}

TEST(Snapshot, IsRefusedWhenAnyByteIsWrong) {
  MemoryRig before;
  before.Ask(1, before.Make(kAllAlgorithms[0]), kStart);
  const std::string bytes = before.store.Snapshot(kStart);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string corrupt = bytes;
    corrupt[i] = static_cast<char>(corrupt[i] ^ 0x10);
    MemoryRig after;
    EXPECT_FALSE(after.store.Restore(corrupt, kStart).ok()) << i;
    EXPECT_EQ(after.buckets(), 0u);
  }
}

TEST(Snapshot, ASnapshotOfANewerVersionIsRefusedByName) {
  MemoryRig before, after;
  std::string bytes = before.store.Snapshot(kStart);
  bytes[8] = 6;
  const absl::Status status = after.store.Restore(bytes, kStart);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("version 6, newer than this program's 5"));
}

TEST(Snapshot, AfterTheClockWasSetBackWhatWasConsumedStaysConsumed) {
  for (const LimitSpec& spec : kAllAlgorithms) {
    MemoryRig before, after;
    const Decision last = before.Ask(1, before.Make(spec), kStart, 5);
    ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart), kStart - 24h).ok());
    EXPECT_EQ(after.store.stats().rebased, 1u);
    const LimitHandle limit = after.Make(spec);
    EXPECT_LE(after.Ask(1, limit, kStart - 24h, 0).remaining, last.remaining)
        << Name(spec.algorithm);
    // Time passes for the restored bucket again.
    const base::Duration full_after = algorithm::TimeToFull(*algorithm::Limit::Make(spec));
    EXPECT_GT(after.Ask(1, limit, kStart - 24h + full_after, 0).remaining, last.remaining)
        << Name(spec.algorithm);
  }
}

}  // namespace memory_test
}  // namespace headgate::store
