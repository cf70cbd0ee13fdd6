#include "headgate/algorithm/counter.h"

#include <gtest/gtest.h>

#include <random>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"

namespace headgate::algorithm {
namespace counter_test {

using base::Decimal;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = CounterExpiry::Kind;
using Outcome = CounterAnswer::Outcome;

constexpr Instant kNow = Instant::FromNanos(1'790'000'000'000'000'123);
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Decimal D(std::string_view text) {
  Decimal number;
  EXPECT_EQ(base::ParseDecimal(text, number), base::DecimalProblem::kNone) << text;
  return number;
}

// A counter and the clock.
struct Bench {
  // "value applied", or the outcome's number if the change had none.
  std::string Change(const CounterChange& change) {
    const CounterAnswer answer = Increment(change, counter, now);
    if (answer.outcome > Outcome::kRefused)
      return "outcome " + std::to_string(static_cast<int>(answer.outcome));
    return ToText(answer.value) + " " + ToText(answer.applied);
  }
  std::string By(int64_t by, int64_t least = kMin, int64_t most = kMax) {
    return Change({.by = Decimal::Integer(by),
                   .least = Decimal::Integer(least),
                   .most = Decimal::Integer(most)});
  }
  std::string Saturate(int64_t by, int64_t least = kMin, int64_t most = kMax) {
    return Change({.by = Decimal::Integer(by),
                   .least = Decimal::Integer(least),
                   .most = Decimal::Integer(most),
                   .saturates = true});
  }
  std::string ByDecimal(std::string_view by) {
    return Change({.kind = CounterChange::Kind::kDecimal, .by = D(by)});
  }
  std::string Expire(Kind kind, milliseconds time = {}, bool only_if_none = false) {
    return Change({.expiry = {.kind = kind, .time = time, .only_if_none = only_if_none}});
  }
  void Set(int64_t value) { counter = Counter{.value = Decimal::Integer(value)}; }

  std::optional<Counter> counter{};
  Instant now = kNow;
};

TEST(CounterTest, AMissingCounterCountsAsZero) {
  Bench bench;
  EXPECT_EQ(bench.By(1), "1 1");
  EXPECT_EQ(bench.By(41), "42 41");
  EXPECT_EQ(bench.By(-50), "-8 -50");
  EXPECT_EQ(bench.counter->expires_at, Counter::kNeverExpires);
}

TEST(CounterTest, AValueOfZeroIsACounter) {
  Bench bench;
  EXPECT_EQ(bench.By(0), "0 0");
  EXPECT_TRUE(bench.counter.has_value());
}

TEST(CounterTest, WhatWouldLeaveTheBoundsChangesNothing) {
  Bench bench;
  EXPECT_EQ(bench.By(15, kMin, 10), "0 0");
  EXPECT_FALSE(bench.counter.has_value());
  bench.Set(10);
  const auto before = bench.counter;
  EXPECT_EQ(bench.By(10, kMin, 15), "10 0");
  EXPECT_EQ(bench.By(-10, 5, kMax), "10 0");
  EXPECT_EQ(bench.Change({.most = Decimal::Integer(10),
                          .expiry = {.kind = Kind::kIn, .time = milliseconds(5)}}),
            "10 0");
  EXPECT_EQ(bench.counter, before);
  EXPECT_EQ(bench.By(5, 0, 15), "15 5") << "a bound is allowed";
  // Outside of the bounds already.
  EXPECT_EQ(bench.By(1, kMin, 9), "15 0");
  EXPECT_EQ(bench.By(-6, kMin, 9), "9 -6");
}

TEST(CounterTest, SaturationStopsAtTheBound) {
  Bench bench;
  bench.Set(10);
  EXPECT_EQ(bench.Saturate(10, kMin, 15), "15 5");
  EXPECT_EQ(bench.Saturate(-20, 0, kMax), "0 -15");
  bench.Set(50);
  EXPECT_EQ(bench.Saturate(5, kMin, 30), "30 -20");
  bench.counter.reset();
  EXPECT_EQ(bench.Saturate(1, 5, kMax), "5 5");
  bench.counter.reset();
  EXPECT_EQ(bench.Saturate(1, kMin, 0), "0 0");
  EXPECT_TRUE(bench.counter.has_value());
}

TEST(CounterTest, TheTypeIsABoundToo) {
  Bench bench;
  bench.Set(kMax - 7);
  EXPECT_EQ(bench.By(8), std::to_string(kMax - 7) + " 0");
  EXPECT_EQ(bench.Saturate(kMax), std::to_string(kMax) + " 7");
  EXPECT_EQ(bench.ByDecimal("1"), std::to_string(kMax) + " 0");
  bench.Set(kMin + 7);
  EXPECT_EQ(bench.By(-8), std::to_string(kMin + 7) + " 0");
  EXPECT_EQ(bench.Saturate(kMin), std::to_string(kMin) + " -7");
}

TEST(CounterTest, AnAppliedPartOfMoreThan64BitsChangesNothing) {
  Bench bench;
  bench.Set(5);
  EXPECT_EQ(bench.Saturate(1, kMin, kMin), "outcome 4");
  EXPECT_EQ(bench.By(0), "5 0");
  bench.Set(-1);
  EXPECT_EQ(bench.Saturate(1, kMin, kMin), std::to_string(kMin) + " -9223372036854775807");
}

TEST(CounterTest, DecimalsAreExact) {
  Bench bench;
  EXPECT_EQ(bench.ByDecimal("0.1"), "0.1 0.1");
  EXPECT_EQ(bench.ByDecimal("0.2"), "0.3 0.2");
  EXPECT_EQ(bench.By(1), "outcome 2") << "an integer changes only integers";
  EXPECT_EQ(bench.ByDecimal("-0.3"), "0 -0.3");
  EXPECT_EQ(bench.By(1), "1 1");
  EXPECT_EQ(bench.ByDecimal("0.00000000000000001"), "1.00000000000000001 0.00000000000000001");
  EXPECT_EQ(bench.ByDecimal("92"), "outcome 5") << "19 digits are at most 2^63 - 1";
  EXPECT_EQ(bench.ByDecimal("91"), "92.00000000000000001 91");
}

TEST(CounterTest, KeepsItsExpiryUnlessToldOtherwise) {
  Bench bench;
  EXPECT_EQ(bench.Expire(Kind::kIn, milliseconds(1500)), "1 1");
  EXPECT_EQ(bench.counter->expires_at, kNow + milliseconds(1500));
  bench.now = kNow + milliseconds(1000);
  EXPECT_EQ(bench.By(1), "2 1");
  EXPECT_EQ(bench.Expire(Kind::kIn, milliseconds(9000), true), "3 1");
  EXPECT_EQ(bench.counter->expires_at, kNow + milliseconds(1500));
  EXPECT_EQ(bench.Expire(Kind::kIn, milliseconds(1000)), "4 1");
  EXPECT_EQ(bench.counter->expires_at, kNow + milliseconds(2000));
  EXPECT_EQ(bench.Expire(Kind::kRemove), "5 1");
  EXPECT_EQ(bench.counter->expires_at, Counter::kNeverExpires);
  EXPECT_EQ(bench.Expire(Kind::kAt, milliseconds(1'790'000'060'000), true), "6 1");
  EXPECT_EQ(bench.counter->expires_at, Instant::FromNanos(1'790'000'060'000'000'000));
}

TEST(CounterTest, ExpiresAtItsTimeAndNotANanosecondEarlier) {
  Bench bench;
  bench.Expire(Kind::kIn, milliseconds(10));
  bench.now = kNow + milliseconds(10) - nanoseconds(1);
  EXPECT_EQ(bench.By(1), "2 1");
  bench.now = kNow + milliseconds(10);
  EXPECT_EQ(bench.By(1), "1 1");
  EXPECT_EQ(bench.counter->expires_at, Counter::kNeverExpires);
}

TEST(CounterTest, AnExpiryThatHasPassedRemovesIt) {
  Bench bench;
  bench.Set(10);
  EXPECT_EQ(bench.Expire(Kind::kAt, milliseconds(1)), "11 1");
  EXPECT_FALSE(bench.counter.has_value());
  bench.Expire(Kind::kIn, milliseconds(10));
  EXPECT_EQ(bench.Expire(Kind::kAt, milliseconds(1), true), "2 1");
  EXPECT_TRUE(bench.counter.has_value()) << "an expiry that it has stays";
}

TEST(CounterTest, SaturationSetsTheExpiryEvenIfNothingIsAdded) {
  Bench bench;
  bench.Set(10);
  EXPECT_EQ(bench.Change({.most = Decimal::Integer(10),
                          .saturates = true,
                          .expiry = {.kind = Kind::kIn, .time = milliseconds(5)}}),
            "10 0");
  EXPECT_EQ(bench.counter->expires_at, kNow + milliseconds(5));
}

TEST(CounterTest, TheLatestExpiryIsBeforeNever) {
  Bench bench{.now = base::kInstantMax};
  bench.Expire(Kind::kIn, kCounterExpiryMax);
  EXPECT_LT(bench.counter->expires_at, Counter::kNeverExpires);
  EXPECT_GT(bench.counter->expires_at, base::kInstantMax);
}

TEST(CounterTest, InThePlaceOfABucketIsFullFromItsExpiryOn) {
  const auto none = *Limit::Make({.requests = 0, .period = std::chrono::seconds(1)});
  NoHits no_hits;
  for (const Counter& counter :
       {Counter{.value = D("-12.5"), .expires_at = kNow}, Counter{.value = D("0")},
        Counter{.value = Decimal::Min(), .expires_at = kNow}, Counter{.value = D("1e-17")}}) {
    const BucketState state = StateOf(counter);
    EXPECT_EQ(CounterOf(state), counter);
    const nanoseconds late = FreshAt(none, state, no_hits) - counter.expires_at;
    EXPECT_GE(late, nanoseconds(0));
    EXPECT_LE(late, nanoseconds(1));
  }
}

// Random changes of one counter. Without floating point, in units of 1/100, so that no sum has too
// many digits.
TEST(CounterProperties, StaysWithinBoundsIsTheSumOfWhatWasAppliedAndLivesAsLongAsItSays) {
  constexpr uint64_t kSeed = 20'261'124;
  std::mt19937_64 random(kSeed);
  const auto cents = [&](int64_t span) {
    const auto units = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * span)) - span;
    return *Decimal::FromWide(units * (Decimal{.units = 1, .scale = 2}).wide());
  };
  Bench bench;
  base::int128 sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    SCOPED_TRACE(i);
    CounterChange change{
        .kind = CounterChange::Kind::kDecimal, .by = cents(1000), .saturates = random() % 2 == 0};
    if (random() % 2 == 0) change.least = cents(2000);
    if (random() % 2 == 0) change.most = cents(2000);
    if (change.least.wide() > change.most.wide()) std::swap(change.least, change.most);
    change.expiry.kind = static_cast<Kind>(random() % 4);
    const auto ms = static_cast<int64_t>(random() % 200);
    change.expiry.time =
        milliseconds(change.expiry.kind == Kind::kAt ? bench.now.ns / 1'000'000 + ms - 50 : ms + 1);
    change.expiry.only_if_none = random() % 2 == 0;
    bench.now = bench.now + nanoseconds(random() % 50'000'000);

    const bool lives = bench.counter && bench.counter->expires_at > bench.now;
    if (!lives) sum = 0;
    const auto before = bench.counter;
    const CounterAnswer answer = Increment(change, bench.counter, bench.now);
    sum += answer.applied.wide();
    ASSERT_TRUE(answer.value.wide() == sum);
    if (answer.outcome == Outcome::kRefused) {
      ASSERT_EQ(bench.counter, before);
      ASSERT_EQ(answer.applied, Decimal());
      ASSERT_FALSE(change.saturates);
      continue;
    }
    ASSERT_EQ(answer.outcome, Outcome::kApplied);
    ASSERT_TRUE(change.least.wide() <= sum && sum <= change.most.wide());
    if (!change.saturates) {
      ASSERT_EQ(answer.applied, change.by);
    }
    if (bench.counter) {
      ASSERT_EQ(bench.counter->value, answer.value);
      ASSERT_GT(bench.counter->expires_at, bench.now);
    }
  }
}

}  // namespace counter_test
}  // namespace headgate::algorithm
