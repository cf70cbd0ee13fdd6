// The memory store's promise when it is full: a class never loses a bucket to one that holds as
// much or more. Each flood brings 2, 10 or 100 times as many keys as the table has slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headgate/store/memory.h"

namespace headgate::store {
namespace flood_test {

using algorithm::Algorithm;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);
constexpr uint64_t kPlaces = 1500;
constexpr std::array<uint64_t, 3> kTimes{2, 10, 100};
constexpr LimitSpec kFivePerHour{.requests = 5, .period = 1h};
// 126 years: the limit of CL.THROTTLE with `x 0 1 4000000000`.
constexpr LimitSpec kEndless{
    .requests = 1, .period = std::chrono::seconds(4'000'000'000), .burst = 1};

constexpr std::array kAlgorithms{Algorithm::kTokenBucket, Algorithm::kLeakyBucketQueue,
                                 Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter,
                                 Algorithm::kSlidingWindowLog};

// Keys are numbers. A rule and clients use different keys for the same number.
struct TestStore {
  explicit TestStore(uint64_t max_buckets = kPlaces) : store({.max_buckets = max_buckets}) {}

  LimitHandle OfRule(std::string_view rule, const LimitSpec& spec, uint32_t version = 0) {
    return *store.limits().Intern(*Limit::Make(spec), version, LimitOwner::Rule(rule));
  }
  LimitHandle OfClients(const LimitSpec& spec) {
    return *store.limits().Intern(*Limit::Make(spec));
  }

  bool Passes(uint64_t key, const LimitHandle& limit, Instant now = kStart,
              algorithm::Cost cost = 1, std::span<const LimitChange> history = {}) {
    const std::array<uint64_t, 2> named{key, limit->owner->owner.number()};
    const TakeRequest request{
        .key = base::HashBytes(store.hash_secret(), base::KeyKind::kRaw,
                               {reinterpret_cast<const char*>(named.data()), sizeof named}),
        .limit = limit.get(),
        .history = history,
        .cost = cost};
    Decision decision;
    store.Take({&request, 1}, {&decision, 1}, now);
    return decision.allowed;
  }
  // Sends one request for each of `keys` keys.
  void Flood(const LimitHandle& limit, uint64_t keys, Instant now = kStart) {
    for (uint64_t key = 0; key < keys; ++key) Passes(key, limit, now);
  }
  uint64_t HeldBy(const LimitHandle& limit) const { return limit->owner->buckets.load(); }

  MemoryStore store;
};

// Users that have exhausted a rule's limit stay denied before and during a flood.
void ExpectHeldBack(TestStore& test, const LimitHandle& rule, uint64_t users) {
  for (uint64_t user = 0; user < users; ++user) ASSERT_FALSE(test.Passes(user, rule)) << user;
}

TEST(Flood, LimitsOfClientsFreeNobodyThatARuleHoldsBack) {
  for (const uint64_t times : kTimes) {
    for (const Algorithm algorithm : kAlgorithms) {
      TestStore test;
      const LimitHandle rule =
          test.OfRule("held", {.algorithm = algorithm, .requests = 5, .period = 1h});
      for (uint64_t user = 0; user < 300; ++user) {
        uint64_t passed = 0;
        for (int i = 0; i < 10; ++i) passed += test.Passes(user, rule) ? 1u : 0u;
        ASSERT_GE(passed, 5u);
      }
      test.Flood(test.OfClients(kEndless), times * kPlaces);
      ExpectHeldBack(test, rule, 300);
      EXPECT_GE(test.store.stats().evictions, (times - 1) * kPlaces);
      EXPECT_LE(test.store.stats().buckets, kPlaces);
    }
  }
}

TEST(Flood, OverridesFreeNobodyThatARuleHoldsBack) {
  for (const uint64_t times : kTimes) {
    TestStore test;
    const LimitHandle rule = test.OfRule("held", kFivePerHour);
    for (uint64_t user = 0; user < 300; ++user) test.Passes(user, rule, kStart, 5);
    for (uint64_t key = 0; key < times * kPlaces; ++key) {
      const LimitHandle limit = test.OfClients({.algorithm = Algorithm::kFixedWindow,
                                                .requests = 1 + key % 1000,
                                                .period = 24h * 365,
                                                .count_denied = true});
      test.Passes(key, limit, kStart, 1000);
    }
    ExpectHeldBack(test, rule, 300);
  }
}

TEST(Flood, KeysOfOneRuleFreeNobodyThatAnotherHoldsBack) {
  for (const uint64_t times : kTimes) {
    TestStore test;
    const LimitHandle rule = test.OfRule("held", kFivePerHour);
    const LimitHandle other = test.OfRule("flooded", {.requests = 1, .period = 24h * 365});
    for (uint64_t user = 0; user < 300; ++user) test.Passes(user, rule, kStart, 5);
    test.Flood(other, times * kPlaces);
    ExpectHeldBack(test, rule, 300);
    EXPECT_GT(test.HeldBy(other), kPlaces - 400);
  }
}

// A new bucket of the rule evicts the bucket of the rule that loses least, and a bucket that was
// used only once loses less than an exhausted one.
TEST(Flood, KeysThatAreUsedOnceFreeNobodyOfTheSameRule) {
  for (const uint64_t times : kTimes) {
    for (const Algorithm algorithm : kAlgorithms) {
      TestStore test;
      const LimitHandle rule =
          test.OfRule("rule", {.algorithm = algorithm, .requests = 5, .period = 1h});
      for (uint64_t user = 0; user < 300; ++user) {
        for (int i = 0; i < 6; ++i) test.Passes(user, rule);
      }
      for (uint64_t key = 1000; key < 1000 + times * kPlaces; ++key)
        test.Passes(key, rule, kStart + Duration(1ms));
      for (uint64_t user = 0; user < 300; ++user) {
        ASSERT_FALSE(test.Passes(user, rule, kStart + Duration(1ms)))
            << Name(algorithm) << " " << user;
      }
    }
  }
}

// During floods of all kinds, a rule admits exactly what its limit allows, at every moment.
TEST(Flood, WhileItGoesOnARuleLetsThroughAsMuchAsWithout) {
  for (const Algorithm algorithm : kAlgorithms) {
    TestStore flooded, alone;
    const LimitSpec spec{.algorithm = algorithm, .requests = 20, .period = 60s};
    const LimitHandle rule = flooded.OfRule("held", spec), rule_alone = alone.OfRule("held", spec);
    const LimitHandle other = flooded.OfRule("flooded", {.requests = 3, .period = 24h});
    std::mt19937_64 random(1);
    Instant now = kStart;
    for (uint64_t i = 0; i < 40 * kPlaces; ++i) {
      now = now + Duration(static_cast<int64_t>(random() % 2'000'000));
      const uint64_t key = random();
      switch (random() % 4) {
        case 0:
          flooded.Passes(key, flooded.OfClients(kEndless), now);
          break;
        case 1:
          flooded.Passes(key, flooded.OfClients({.requests = 1 + key % 50'000, .period = 24h}),
                         now);
          break;
        case 2:
          flooded.Passes(key, other, now);
          break;
        default:
          ASSERT_EQ(flooded.Passes(key % 100, rule, now), alone.Passes(key % 100, rule_alone, now))
              << Name(algorithm);
      }
    }
    EXPECT_GT(flooded.store.stats().evictions, 10 * kPlaces);
  }
}

TEST(ClassShare, ClientsAloneHaveTheWholeTable) {
  TestStore test;
  const LimitHandle limit = test.OfClients(kFivePerHour);
  test.Flood(limit, kPlaces);
  EXPECT_EQ(test.HeldBy(limit), kPlaces);
  EXPECT_EQ(test.store.stats().evictions, 0u);
  for (uint64_t key = 0; key < kPlaces; ++key)
    ASSERT_TRUE(test.Passes(key, limit, kStart, 4)) << key;
  for (uint64_t key = 0; key < kPlaces; ++key) ASSERT_FALSE(test.Passes(key, limit)) << key;
}

TEST(ClassShare, TwoThatWantAllHaveHalfEach) {
  TestStore test;
  const LimitHandle a = test.OfRule("a", kFivePerHour), b = test.OfRule("b", kFivePerHour);
  test.Flood(a, 5 * kPlaces);
  EXPECT_GT(test.HeldBy(a), kPlaces * 99 / 100);
  test.Flood(b, 5 * kPlaces);
  EXPECT_NEAR(static_cast<double>(test.HeldBy(a)), kPlaces / 2, kPlaces / 50);
  EXPECT_NEAR(static_cast<double>(test.HeldBy(b)), kPlaces / 2, kPlaces / 50);
}

TEST(ClassShare, AShareThatOneClassLeavesGoesToTheOthers) {
  TestStore test;
  const LimitHandle small = test.OfRule("small", kFivePerHour);
  const LimitHandle a = test.OfRule("a", kEndless), b = test.OfClients(kEndless);
  test.Flood(small, 300);
  test.Flood(a, 5 * kPlaces);
  test.Flood(b, 5 * kPlaces);
  EXPECT_EQ(test.HeldBy(small), 300u);
  EXPECT_NEAR(static_cast<double>(test.HeldBy(a)), (kPlaces - 300) / 2, kPlaces / 50);
  EXPECT_NEAR(static_cast<double>(test.HeldBy(b)), (kPlaces - 300) / 2, kPlaces / 50);
}

TEST(ClassShare, VeryManyRulesWithFewBucketsEachKeepThem) {
  TestStore test(4000);
  std::vector<LimitHandle> rules;
  for (int i = 0; i < 1000; ++i)
    rules.push_back(test.OfRule("r" + std::to_string(i), kFivePerHour));
  for (const LimitHandle& rule : rules) {
    for (uint64_t user = 0; user < 3; ++user) test.Passes(user, rule, kStart, 5);
  }
  test.Flood(test.OfClients(kEndless), 100'000);
  for (const LimitHandle& rule : rules) ExpectHeldBack(test, rule, 3);
}

TEST(ClassShare, BucketsOfARuleThatChangedAreTheRulesStill) {
  TestStore test;
  const LimitHandle before = test.OfRule("rule", kFivePerHour);
  const LimitHandle after = test.OfRule("rule", {.requests = 3, .period = 1h});
  const LimitChange change{before.get(), kStart};
  for (uint64_t user = 0; user < 300; ++user) test.Passes(user, before, kStart, 5);
  for (uint64_t user = 0; user < 150; ++user)
    EXPECT_FALSE(test.Passes(user, after, kStart, 1, {&change, 1}));
  EXPECT_EQ(test.HeldBy(before), 300u);
  test.Flood(test.OfClients(kEndless), 10 * kPlaces);
  for (uint64_t user = 0; user < 300; ++user)
    EXPECT_FALSE(test.Passes(user, after, kStart, 1, {&change, 1})) << user;
}

TEST(ClassShare, ABucketThatAnotherRuleTakesOverIsCountedThere) {
  TestStore test;
  const LimitHandle a = test.OfRule("a", kFivePerHour), b = test.OfRule("b", kFivePerHour);
  const base::Hash128 key = base::HashBytes(test.store.hash_secret(), base::KeyKind::kRaw, "k");
  Decision decision;
  for (const LimitHandle& limit : {a, b}) {
    const TakeRequest request{.key = key, .limit = limit.get()};
    test.store.Take({&request, 1}, {&decision, 1}, kStart);
  }
  EXPECT_EQ(test.HeldBy(a), 0u);
  EXPECT_EQ(test.HeldBy(b), 1u);
}

TEST(ClassShare, EachClassGetsOneOfThreePlaces) {
  TestStore test(3);
  const LimitHandle a = test.OfRule("a", kFivePerHour), b = test.OfRule("b", kFivePerHour);
  const LimitHandle clients = test.OfClients(kEndless);
  test.Flood(clients, 10);
  test.Passes(1, a, kStart, 5);
  test.Passes(1, b, kStart, 5);
  test.Flood(clients, 1000);
  EXPECT_FALSE(test.Passes(1, a));
  EXPECT_FALSE(test.Passes(1, b));
}

TEST(ClassShare, IsCountedExactlyWhateverThreadsDo) {
  TestStore test(500);
  const std::array limits{
      test.OfRule("a", kFivePerHour),
      test.OfRule("b", {.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 1s}),
      test.OfClients(kEndless), test.OfClients({.requests = 2, .period = 1s})};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int64_t i = 0; i < 20'000; ++i) {
        const LimitHandle& limit = limits[random() % limits.size()];
        test.Passes(random() % 2000, limit, kStart + Duration(i * 100'000));
        // Limits of clients come and go meanwhile.
        if (i % 16 == 0) test.OfClients({.requests = 1 + random() % 1'000'000, .period = 1s});
        if (i % 1000 == 0) test.store.Sweep(kStart + Duration(i * 100'000));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t buckets = test.HeldBy(limits[0]) + test.HeldBy(limits[1]) + test.HeldBy(limits[2]);
  EXPECT_EQ(buckets, test.store.stats().buckets);
  EXPECT_EQ(limits[1]->owner->hit_blocks.load(), test.store.stats().hit_blocks);
  test.store.Sweep(kStart + 2h);
  EXPECT_EQ(test.HeldBy(limits[0]), 0u);
  EXPECT_EQ(test.store.stats().hit_blocks, 0u);
}

// ---- The hits of logs

constexpr LimitSpec kLargeLog{.algorithm = Algorithm::kSlidingWindowLog,
                              .requests = algorithm::kLogRequestsMax,
                              .period = 24h};

// Fills the store with `hits` hits at different times, as far as `keys` keys can hold them.
void FillHits(TestStore& test, const LimitHandle& limit, uint64_t keys, uint64_t hits) {
  for (uint64_t key = 0; key < keys; ++key) {
    for (uint64_t i = 0; i < hits; ++i)
      test.Passes(key, limit, kStart + Duration(static_cast<int64_t>(i)));
  }
}

TEST(HitShare, LargeLogsOfOneRuleDenyNobodyOfAnother) {
  for (const uint64_t places : {uint64_t{60}, uint64_t{20'000}}) {
    TestStore test(places);
    const LimitHandle greedy = test.OfRule("greedy", kLargeLog);
    const LimitHandle rule = test.OfRule(
        "modest", {.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 1h});
    FillHits(test, greedy, 2, algorithm::kLogRequestsMax);
    EXPECT_EQ(test.store.stats().hit_blocks, test.store.stats().hit_blocks_max);
    for (uint64_t user = 0; user < 20; ++user) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(test.Passes(user, rule, kStart + 1s + Duration(i))) << places << " " << user;
      }
      ASSERT_FALSE(test.Passes(user, rule, kStart + 2s));
    }
  }
}

TEST(HitShare, AFloodOfLogsFreesNobodyThatAnotherRuleHoldsBack) {
  for (const uint64_t times : {uint64_t{2}, uint64_t{10}}) {
    TestStore test(30'000);
    const LimitHandle flooded = test.OfRule("flooded", kLargeLog);
    const LimitHandle rule = test.OfRule(
        "held", {.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 1h});
    for (uint64_t user = 0; user < 100; ++user) {
      for (int i = 0; i < 5; ++i) test.Passes(user, rule, kStart + Duration(i));
    }
    // Every fourth key is used often, so hit blocks run out before slots.
    const uint64_t hits_max = test.store.stats().hit_blocks_max;
    for (uint64_t i = 0; i < times * hits_max; ++i) {
      const uint64_t key = i % 4 == 0 ? i % 1000 : i;
      test.Passes(key, flooded, kStart + Duration(static_cast<int64_t>(10 + i)));
    }
    for (uint64_t user = 0; user < 100; ++user)
      ASSERT_FALSE(test.Passes(user, rule, kStart + 1s)) << user;
  }
}

TEST(HitShare, AForgottenLogGivesItsHitsBack) {
  TestStore test(60);
  const LimitHandle log = test.OfRule("log", kLargeLog);
  for (uint64_t i = 0; i < 100'000; ++i)
    test.Passes(i, log, kStart + Duration(static_cast<int64_t>(i)));
  EXPECT_LE(test.store.stats().hit_blocks, 60u);
  EXPECT_EQ(log->owner->hit_blocks.load(), test.store.stats().hit_blocks);
}

// ---- Limits that clients bring

TEST(ClientLimits, OverTheBoundForgetTheLeastRecentlyUsedAndCountWhatItLost) {
  MemoryStore store({.max_buckets = 10'000, .max_limits = 1000});
  const auto ask = [&](uint64_t key, const LimitEntry& limit) {
    const TakeRequest request{
        .key = base::HashBytes(store.hash_secret(), base::KeyKind::kRaw,
                               {reinterpret_cast<const char*>(&key), sizeof key}),
        .limit = &limit};
    Decision decision;
    store.Take({&request, 1}, {&decision, 1}, kStart);
    return decision.allowed;
  };
  const LimitHandle rule =
      *store.limits().Intern(*Limit::Make({.requests = 1, .period = 1h}), 0, LimitOwner::Rule("r"));
  for (uint64_t key = 0; key < 100; ++key) EXPECT_TRUE(ask(key, *rule));
  // More limits than there are numbers.
  for (uint64_t key = 1000; key < 330'000; ++key) {
    const auto limit = store.limits().Intern(
        *Limit::Make({.requests = 1, .period = Duration(key * 1'000'000'000)}));
    ASSERT_TRUE(limit.ok()) << key;
    ASSERT_TRUE(ask(key, **limit));
    ASSERT_FALSE(ask(key, **limit));
  }
  const MemoryStats stats = store.stats();
  EXPECT_EQ(stats.client_limits, 1000u);
  EXPECT_EQ(stats.client_limits_forgotten, 328'000u);
  EXPECT_GT(stats.evicted_requests, 300'000u);
  for (uint64_t key = 0; key < 100; ++key) EXPECT_FALSE(ask(key, *rule));
}

TEST(ClientLimits, ASnapshotOfMoreThanFitIsLoadedAsFarAsItFits) {
  TestStore before;
  const LimitHandle rule = before.OfRule("r", kFivePerHour);
  before.Passes(1, rule, kStart, 5);
  std::vector<LimitHandle> limits;
  for (uint64_t i = 1; i <= 500; ++i) {
    limits.push_back(before.OfClients(
        {.algorithm = i % 2 == 0 ? Algorithm::kTokenBucket : Algorithm::kSlidingWindowLog,
         .requests = i,
         .period = 1h}));
    before.Passes(i, limits.back());
  }
  MemoryStore after({.max_buckets = 1000, .max_limits = 100});
  ASSERT_TRUE(after.Restore(before.store.Snapshot(kStart), kStart).ok());
  EXPECT_EQ(after.stats().buckets, 101u);
  EXPECT_EQ(after.stats().left_out, 400u);
  // The rule finds its limit, its class and its consumption.
  const LimitHandle again =
      *after.limits().Intern(*Limit::Make(kFivePerHour), 0, LimitOwner::Rule("r"));
  EXPECT_EQ(again->owner->buckets.load(), 1u);
}

}  // namespace flood_test
}  // namespace headgate::store
