#include "headgate/limiter/shared/local_shares.h"

#include <gtest/gtest.h>

#include <random>

namespace headgate::limiter::shared {
namespace local_shares_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::Limit;
using algorithm::LimitSpec;
using namespace std::chrono_literals;

Limit Part(const LimitSpec& whole, Fraction fraction) {
  return *Limit::Make(PartOf(whole, fraction));
}

TEST(PartOf, ABucketsRateIsDividedExactly) {
  const Limit hourly = Part({.requests = 1, .period = 1h}, {1, 50});
  EXPECT_EQ(hourly.spec().requests, 1u);
  EXPECT_EQ(hourly.spec().period, 50h);
  EXPECT_EQ(hourly.capacity(), 1u);
  const Limit third = Part({.requests = 5, .period = 1s, .burst = 10}, {1, 3});
  EXPECT_EQ(third.spec().requests, 5u);
  EXPECT_EQ(third.spec().period, 3s);
  EXPECT_EQ(third.capacity(), 3u);
  const Limit fifth = Part({.requests = 10, .period = 20s}, {200'000, 1'000'000});
  EXPECT_EQ(fifth.spec().requests, 10u);
  EXPECT_EQ(fifth.spec().period, 100s);
  EXPECT_EQ(fifth.capacity(), 2u);
}

TEST(PartOf, AWindowIsRoundedDownOrMadeLongerIfItWouldBeEmpty) {
  EXPECT_EQ(Part({.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1min}, {1, 3})
                .capacity(),
            3u);
  const Limit rare =
      Part({.algorithm = Algorithm::kSlidingWindowLog, .requests = 2, .period = 1h}, {1, 5});
  EXPECT_EQ(rare.capacity(), 1u);
  EXPECT_EQ(rare.spec().period, 3h);
  const Limit monthly =
      Part({.algorithm = Algorithm::kFixedWindow, .requests = 2, .align = Align::kCalendarMonth},
           {1, 5});
  EXPECT_EQ(monthly.capacity(), 1u) << "a month keeps its length";
}

TEST(PartOf, AQueueWithoutWaitingPlacesStaysWithoutThem) {
  const LimitSpec queue{
      .algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 0};
  EXPECT_EQ(Part(queue, {1, 2}).spec().burst, 0u);
}

TEST(PartOf, ThePartOfALimitOf0RequestsIsTheLimit) {
  EXPECT_EQ(PartOf({.requests = 0, .period = 1s}, {1, 3}).requests, 0u);
}

TEST(PartOf, AllPartsTogetherDoNotExceedTheWhole) {
  std::mt19937_64 random(1);
  const auto up_to = [&](uint64_t most) { return 1 + (random() >> (random() % 64)) % most; };
  int whole_ones = 0;
  for (int i = 0; i < 100'000; ++i) {
    LimitSpec whole{.algorithm = static_cast<Algorithm>(random() % 6)};
    const bool is_bucket = IsBucket(whole.algorithm);
    whole.requests = up_to(is_bucket ? uint64_t{1} << 34 : 100'000);
    whole.period =
        base::Duration(static_cast<int64_t>(up_to(uint64_t{1} << (is_bucket ? 61 : 60))));
    if (is_bucket && random() % 2 == 0) whole.burst = up_to(1'000'000);
    if (!Limit::Make(whole).ok()) continue;
    Fraction fraction{.denominator = static_cast<uint32_t>(up_to(1'000'000))};
    fraction.numerator = static_cast<uint32_t>(up_to(fraction.denominator));
    const LimitSpec part = PartOf(whole, fraction);
    ASSERT_TRUE(Limit::Make(part).ok());
    if (part == whole) {
      whole_ones += fraction.numerator < fraction.denominator ? 1 : 0;
      continue;
    }
    ASSERT_GE(part.requests, 1u);
    ASSERT_LE(part.burst.value_or(part.requests),
              std::max<uint64_t>(1, whole.burst.value_or(whole.requests)));
    // At least one request per period, if a longer period would not be valid.
    if (part.requests == 1 && part.period == whole.period) continue;
    // part.requests / part.period ≤ whole.requests / whole.period · fraction
    const auto left = static_cast<long double>(part.requests) *
                      static_cast<long double>(whole.period.count()) *
                      static_cast<long double>(fraction.denominator);
    const auto right = static_cast<long double>(whole.requests) *
                       static_cast<long double>(part.period.count()) *
                       static_cast<long double>(fraction.numerator);
    ASSERT_LE(left, right * (1 + 1e-15L));
  }
  EXPECT_LT(whole_ones, 2000);
}

class LocalSharesTest : public ::testing::Test {
 protected:
  store::LimitHandle Whole(uint64_t requests) {
    return *limits.Intern(*Limit::Make({.requests = requests, .period = 1s}));
  }

  store::LimitTable limits;
  LocalShares shares{limits};
};

TEST_F(LocalSharesTest, ASingleInstanceHasTheWholeLimit) {
  const store::LimitHandle whole = Whole(10);
  EXPECT_EQ(shares.Of(whole, {1, 1}).get(), whole.get());
}

TEST_F(LocalSharesTest, FollowsTheNumberOfInstances) {
  const store::LimitHandle whole = Whole(10);
  EXPECT_EQ(shares.Of(whole, {1, 2})->limit.capacity(), 5u);
  EXPECT_EQ(shares.Of(whole, {1, 2}).get(), shares.Of(whole, {1, 2}).get());
  EXPECT_EQ(shares.Of(whole, {1, 5})->limit.capacity(), 2u);
}

TEST_F(LocalSharesTest, ThePartOfAFreedLimitIsNotUsedForAnother) {
  EXPECT_EQ(shares.Of(Whole(2000), {1, 2})->limit.capacity(), 1000u);
  const std::vector<bool> no_bucket(store::LimitTable::kIdsMax);
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t next = limits.EndPass(no_bucket, 0); next != 0;)
      next = limits.EndPass(no_bucket, next);
  }
  for (const uint64_t requests : {6u, 8u, 10u})
    EXPECT_EQ(shares.Of(Whole(requests), {1, 2})->limit.capacity(), requests / 2);
}

}  // namespace local_shares_test
}  // namespace headgate::limiter::shared
