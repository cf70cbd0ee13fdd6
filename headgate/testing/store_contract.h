// The promises that every store makes, as a GoogleTest suite that a store's own test runs:
//
//   #include "headgate/testing/store_contract.h"
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreContract, ::testing::Values(StoreUnderTest{…}));
//
// A store decides where algorithm::Decide runs, never what it computes: for any sequence of
// requests, every decision equals that of a separate bucket per key. Steps are drawn from a fixed
// seed. Include this file in one source file of a test.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "headgate/store/store.h"
#include "headgate/testing/store_mirror.h"

namespace headgate::testing {

struct StoreUnderTest {
  std::string name;
  // Creates an empty store with room for 10,000 buckets.
  std::function<std::unique_ptr<store::Store>()> make;
  // Returns the number of stored buckets. Empty if the store does not know it.
  std::function<uint64_t(store::Store&)> count_buckets{};
  // The most steps of a test. Use fewer if each step is a round trip.
  int steps_max = 4'000;
  // If a limit is replaced and then comes back: whether the store sees that it was replaced, even
  // if no request came in between.
  bool tells_versions_apart = true;
  // Whether a time far before the latest seen counts as the latest seen. A store whose clock may be
  // set back accepts the earlier time instead.
  bool holds_on_to_time = true;

  friend std::ostream& operator<<(std::ostream& out, const StoreUnderTest& store) {
    return out << store.name;
  }
};

class StoreContract : public ::testing::TestWithParam<StoreUnderTest> {
 protected:
  static constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'007);
  static constexpr base::Duration kSecond{1'000'000'000};

  StoreContract() : store_(GetParam().make()) {}

  store::Store& store() { return *store_; }
  store::LimitHandle Handle(const algorithm::LimitSpec& spec) { return HandleOf(*store_, spec); }

  algorithm::Decision Ask(const store::TakeRequest& request, base::Instant now) {
    algorithm::Decision decision;
    store_->Take({&request, 1}, {&decision, 1}, now);
    return decision;
  }
  std::vector<algorithm::Decision> Ask(const std::vector<store::TakeRequest>& requests,
                                       base::Instant now) {
    std::vector<algorithm::Decision> decisions(requests.size());
    store_->Take(requests, decisions, now);
    return decisions;
  }
  base::Hash128 Key(const std::string& name) const {
    return base::HashBytes(store_->hash_secret(), base::KeyKind::kRaw, name);
  }
  uint64_t Remaining(const std::string& key, const store::LimitHandle& limit, base::Instant now) {
    return Ask({.key = Key(key), .limit = limit.get(), .cost = 0}, now).remaining;
  }

 private:
  std::unique_ptr<store::Store> store_;
};

TEST_P(StoreContract, DecidesAsALoneBucketOfEachKeyDoes) {
  for (const algorithm::LimitSpec& spec : ContractLimits()) {
    SCOPED_TRACE(ToString(spec));
    StoreMirror mirror(store(), spec, kStart, /*seed=*/1);
    for (int i = 0; i < GetParam().steps_max; ++i) {
      ASSERT_EQ(mirror.Step(), "") << "step " << i;
    }
  }
}

TEST_P(StoreContract, CarriesBucketsThroughChangesOfTheLimitAsOfTheirMoments) {
  const auto limits = ContractLimits();
  for (size_t first = 0; first < limits.size(); ++first) {
    SCOPED_TRACE(ToString(limits[first]));
    StoreMirror mirror(store(), limits[first], kStart, /*seed=*/first + 2);
    for (int i = 0; i < GetParam().steps_max / 2; ++i) {
      ASSERT_EQ(mirror.Step(), "") << "step " << i;
      // Changes of the numbers, the period and the algorithm in turn, some of them without a
      // request in between.
      if (i % 20 == 19)
        mirror.Change(limits[(first + static_cast<size_t>(i / 20)) % limits.size()]);
      if (i % 60 == 59 && GetParam().tells_versions_apart) mirror.Change(limits[first]);
    }
  }
}

TEST_P(StoreContract, CountsATimeBeforeTheLatestSeenByABucketAsThat) {
  for (const algorithm::LimitSpec& spec : ContractLimits()) {
    SCOPED_TRACE(ToString(spec));
    const store::LimitHandle limit = Handle(spec);
    const std::string key = "back " + ToString(spec);
    LoneBucket lone;
    // Within one period, so no store has forgotten the bucket by then.
    const base::Instant at[] = {kStart + base::Duration(9), kStart,
                                kStart + base::Duration(5), kStart + base::Duration(10),
                                base::Instant{0},           kStart + base::Duration(10)};
    for (const base::Instant now : at) {
      if (now.ns == 0 && !GetParam().holds_on_to_time) continue;
      const store::TakeRequest request{.key = Key(key), .limit = limit.get(), .cost = 1};
      EXPECT_EQ(Ask(request, now), lone.Ask(limit->limit, request, now)) << "at " << now.ns;
    }
  }
}

TEST_P(StoreContract, DecidesTheRequestsOfABatchInTheirOrder) {
  const store::LimitHandle limit = Handle({.requests = 2, .period = 20 * kSecond});
  const store::TakeRequest ann{.key = Key("ann"), .limit = limit.get(), .cost = 1};
  const store::TakeRequest bob{.key = Key("bob"), .limit = limit.get(), .cost = 2};
  const auto decisions = Ask({ann, bob, ann, ann, bob}, kStart);
  EXPECT_EQ(decisions[0].remaining, 1u);
  EXPECT_EQ(decisions[1].remaining, 0u);
  EXPECT_EQ(decisions[2].remaining, 0u);
  EXPECT_TRUE(decisions[2].allowed);
  EXPECT_FALSE(decisions[3].allowed);
  EXPECT_EQ(decisions[3].retry_after, 10 * kSecond);
  EXPECT_FALSE(decisions[4].allowed);
  EXPECT_EQ(decisions[4].retry_after, 20 * kSecond);
}

TEST_P(StoreContract, AnswersAnEmptyBatch) {
  EXPECT_TRUE(Ask(std::vector<store::TakeRequest>{}, kStart).empty());
}

TEST_P(StoreContract, ConsumesAJoinedGroupEverywhereOrNowhere) {
  for (const algorithm::LimitSpec& spec : ContractLimits()) {
    if (spec.count_denied) continue;  // the next test
    SCOPED_TRACE(ToString(spec));
    const store::LimitHandle wide = Handle(spec);
    const store::LimitHandle narrow = Handle({.requests = 1, .period = 20 * kSecond});
    const std::string own = "own " + ToString(spec);
    const std::string shared = "shared " + ToString(spec);
    const uint64_t full = Remaining(own, wide, kStart);
    ASSERT_GE(full, 2u);
    const store::TakeRequest first{.key = Key(own), .limit = wide.get(), .cost = 1};
    const store::TakeRequest second{
        .key = Key(shared), .limit = narrow.get(), .cost = 1, .joined = store::Joined::kSameRule};

    auto decisions = Ask({first, second}, kStart);
    EXPECT_TRUE(decisions[0].allowed);
    EXPECT_TRUE(decisions[1].allowed);
    EXPECT_EQ(Remaining(own, wide, kStart), full - 1);

    // The second request denies: the first reports that it would have been allowed, with nothing
    // consumed.
    decisions = Ask({first, second}, kStart);
    EXPECT_TRUE(decisions[0].allowed);
    EXPECT_EQ(decisions[0].remaining, full - 1);
    EXPECT_FALSE(decisions[1].allowed);
    EXPECT_EQ(decisions[1].retry_after, 20 * kSecond);
    EXPECT_EQ(Remaining(own, wide, kStart), full - 1);

    // The same if the denied request comes first.
    store::TakeRequest denied = second;
    denied.joined = store::Joined::kNo;
    store::TakeRequest would = first;
    would.joined = store::Joined::kSameRule;
    decisions = Ask({denied, would}, kStart);
    EXPECT_FALSE(decisions[0].allowed);
    EXPECT_TRUE(decisions[1].allowed);
    EXPECT_EQ(Remaining(own, wide, kStart), full - 1);
  }
}

TEST_P(StoreContract, LimitsThatCountDeniedRequestsCountThoseThatAnotherLimitOfTheGroupDenies) {
  const store::LimitHandle narrow = Handle({.requests = 1, .period = 20 * kSecond});
  for (const algorithm::Algorithm algorithm :
       {algorithm::Algorithm::kFixedWindow, algorithm::Algorithm::kSlidingWindowCounter}) {
    SCOPED_TRACE(Name(algorithm));
    const store::LimitHandle counts = Handle(
        {.algorithm = algorithm, .requests = 4, .period = 3600 * kSecond, .count_denied = true});
    for (const bool counts_first : {true, false}) {
      const std::string suffix = std::string(Name(algorithm)) + (counts_first ? " first" : " last");
      std::vector<store::TakeRequest> group{
          {.key = Key("narrow " + suffix), .limit = narrow.get(), .cost = 1},
          {.key = Key("counts " + suffix), .limit = counts.get(), .cost = 1}};
      if (counts_first) std::swap(group[0], group[1]);
      group[1].joined = store::Joined::kSameRule;
      const size_t at = counts_first ? 0 : 1;
      EXPECT_TRUE(Ask(group, kStart)[1].allowed);

      auto decisions = Ask(group, kStart);
      EXPECT_FALSE(decisions[1 - at].allowed);
      EXPECT_TRUE(decisions[at].allowed);
      EXPECT_EQ(decisions[at].remaining, 2u);
      EXPECT_EQ(Remaining("counts " + suffix, counts, kStart), 2u);
      // This request uses the last free hit. It is counted, so the same request would not fit
      // again.
      Ask(group, kStart);
      decisions = Ask(group, kStart);
      EXPECT_FALSE(decisions[at].allowed);
      EXPECT_GT(decisions[at].retry_after, decisions[1 - at].retry_after);
      EXPECT_EQ(Remaining("counts " + suffix, counts, kStart), 0u);
      // This request was denied by the counting limit itself, and counted.
      Ask(group, kStart);
      Ask({.key = Key("counts " + suffix),
           .limit = counts.get(),
           .cost = 1,
           .operation = store::Operation::kRefund},
          kStart);
      EXPECT_EQ(Remaining("counts " + suffix, counts, kStart), 0u) << "five are counted, four fit";
    }
  }
}

TEST_P(StoreContract, ADeniedGroupLeavesNoBucketBehind) {
  if (!GetParam().count_buckets) return;  // this store does not count its buckets
  const store::LimitHandle limit = Handle({.requests = 1, .period = 20 * kSecond});
  const uint64_t before = GetParam().count_buckets(store());
  Ask({{.key = Key("a"), .limit = limit.get(), .cost = 1},
       {.key = Key("b"), .limit = limit.get(), .cost = 2, .joined = store::Joined::kSameRule}},
      kStart);
  EXPECT_EQ(GetParam().count_buckets(store()), before);
}

TEST_P(StoreContract, AGroupThatNamesABucketTwiceCountsBoth) {
  const store::LimitHandle limit = Handle({.requests = 3, .period = 30 * kSecond});
  const store::TakeRequest one{.key = Key("twice"), .limit = limit.get(), .cost = 1};
  const store::TakeRequest two{.key = Key("twice"), .limit = limit.get(), .cost = 2};
  const auto joined = [](store::TakeRequest request) {
    request.joined = store::Joined::kSameRule;
    return request;
  };
  auto decisions = Ask({two, joined(two)}, kStart);
  EXPECT_FALSE(decisions[0].allowed && decisions[1].allowed);
  EXPECT_EQ(Remaining("twice", limit, kStart), 3u);
  decisions = Ask({two, joined(one)}, kStart);
  EXPECT_TRUE(decisions[0].allowed && decisions[1].allowed);
  EXPECT_EQ(Remaining("twice", limit, kStart), 0u);
}

TEST_P(StoreContract, GroupsThatFollowEachOtherAreTwo) {
  const store::LimitHandle limit = Handle({.requests = 1, .period = 20 * kSecond});
  const store::TakeRequest a{.key = Key("a"), .limit = limit.get(), .cost = 1};
  store::TakeRequest b{
      .key = Key("b"), .limit = limit.get(), .cost = 2, .joined = store::Joined::kSameRule};
  const store::TakeRequest c{.key = Key("c"), .limit = limit.get(), .cost = 1};
  const auto decisions = Ask({a, b, c}, kStart);  // a and b are denied, c stands alone
  EXPECT_FALSE(decisions[1].allowed);
  EXPECT_EQ(Remaining("a", limit, kStart), 1u);
  EXPECT_EQ(Remaining("c", limit, kStart), 0u);
}

TEST_P(StoreContract, LooksCreateNothing) {
  if (!GetParam().count_buckets) return;  // this store does not count its buckets
  for (const algorithm::LimitSpec& spec : ContractLimits()) {
    const store::LimitHandle limit = Handle(spec);
    const uint64_t before = GetParam().count_buckets(store());
    for (int i = 0; i < 10; ++i) {
      const base::Hash128 key = Key("looked at " + std::to_string(i) + ToString(spec));
      Ask({.key = key, .limit = limit.get(), .cost = 0}, kStart);
      Ask({.key = key, .limit = limit.get(), .cost = 1, .operation = store::Operation::kPeek},
          kStart);
      Ask({.key = key, .limit = limit.get(), .cost = 0, .operation = store::Operation::kReset},
          kStart);
      if (spec.algorithm != algorithm::Algorithm::kLeakyBucketQueue) {
        Ask({.key = key, .limit = limit.get(), .cost = 1, .operation = store::Operation::kRefund},
            kStart);
      }
    }
    EXPECT_EQ(GetParam().count_buckets(store()), before) << ToString(spec);
  }
}

TEST_P(StoreContract, DeniesEverythingUnderALimitOfNothing) {
  const store::LimitHandle limit = Handle({.requests = 0, .period = kSecond});
  EXPECT_TRUE(Ask({.key = Key("k"), .limit = limit.get(), .cost = 1}, kStart).never_fits());
  EXPECT_TRUE(Ask({.key = Key("k"), .limit = limit.get(), .cost = 0}, kStart).allowed);
}

TEST_P(StoreContract, AdmitsExactlyTheLimitToManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRequestsPerThread = 1000;
  int keys = 0;
  for (algorithm::LimitSpec spec : ContractLimits()) {
    spec.requests = 1000;
    if (spec.burst) spec.burst = 1000;
    SCOPED_TRACE(ToString(spec));
    const store::LimitHandle limit = Handle(spec);
    const store::TakeRequest request{
        .key = Key("hot " + std::to_string(keys++)), .limit = limit.get(), .cost = 1};
    // The number that a separate bucket admits out of as many requests at one instant.
    LoneBucket lone;
    int expected = 0;
    for (int i = 0; i < kThreads * kRequestsPerThread; ++i)
      expected += lone.Ask(limit->limit, request, kStart).allowed;

    std::atomic<int> admitted{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const std::vector<store::TakeRequest> batch(10, request);
        std::vector<algorithm::Decision> decisions(batch.size());
        for (int i = 0; i < kRequestsPerThread / 10; ++i) {
          store().Take(batch, decisions, kStart);
          for (const auto& decision : decisions) admitted += decision.allowed ? 1 : 0;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(admitted, expected);
  }
}

TEST_P(StoreContract, GroupsOfManyThreadsNeitherBlockEachOtherNorConsumeHalves) {
  constexpr int kThreads = 4;
  constexpr int kKeys = 8;
  constexpr int kGroupsPerThread = 500;
  const store::LimitHandle limit = Handle({.requests = 300, .period = 300 * kSecond});
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kGroupsPerThread; ++i) {
        // Pairs of keys in both orders.
        const int a = (i + t) % kKeys;
        const int b = (a + 1 + i / kKeys % (kKeys - 1)) % kKeys;
        const std::vector<store::TakeRequest> group{
            {.key = Key(std::to_string(a)), .limit = limit.get(), .cost = 1},
            {.key = Key(std::to_string(b)),
             .limit = limit.get(),
             .cost = 1,
             .joined = store::Joined::kSameRule}};
        std::vector<algorithm::Decision> decisions(2);
        store().Take(group, decisions, kStart);
        admitted += decisions[0].allowed && decisions[1].allowed ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t consumed = 0;
  for (int i = 0; i < kKeys; ++i) consumed += 300 - Remaining(std::to_string(i), limit, kStart);
  EXPECT_EQ(consumed, 2u * static_cast<uint64_t>(admitted));
}

}  // namespace headgate::testing
