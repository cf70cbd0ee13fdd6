// When a node asks for a lease, how much it asks for, and how often.
#include "headgate/limiter/lease/lease_sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter::lease {
namespace lease_sizing_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class LeaseSizingTest : public testing::LeaseDialogue {
 protected:
  bool IsExact(const algorithm::LimitSpec& spec) {
    return sizing.IsExact(*algorithm::Limit::Make(spec));
  }
  base::Duration PauseOf(const algorithm::LimitSpec& spec) {
    return sizing.PauseOf(*algorithm::Limit::Make(spec));
  }

  LeaseBookOptions options;
  LeaseSizing sizing{options};
};

using enum algorithm::Algorithm;

// A call for each 20 ms brings 2 requests: 100 a second.
TEST_F(LeaseSizingTest, ABucketThatFillsWithinOneTtlIsExactUnlessItsLimitIsTooLarge) {
  EXPECT_TRUE(IsExact({.requests = 100, .period = 1s}));
  EXPECT_FALSE(IsExact({.requests = 101, .period = 1s}));
  EXPECT_TRUE(IsExact({.requests = 1, .period = 1s}));
  EXPECT_TRUE(IsExact({.requests = 100, .period = 1s, .burst = 200})) << "full after 2 s";
  EXPECT_FALSE(IsExact({.requests = 100, .period = 1s, .burst = 201}));
  EXPECT_TRUE(IsExact({.requests = 6000, .period = 1min, .burst = 10})) << "full after 100 ms";
  EXPECT_FALSE(IsExact({.requests = 6001, .period = 1min, .burst = 10}));
}

TEST_F(LeaseSizingTest, AWindowOfAtMostOneTtlIsExactUnlessItsLimitIsTooLarge) {
  for (const algorithm::Algorithm algorithm : {kFixedWindow, kSlidingWindowCounter}) {
    EXPECT_TRUE(IsExact({.algorithm = algorithm, .requests = 100, .period = 1s}));
    EXPECT_FALSE(IsExact({.algorithm = algorithm, .requests = 101, .period = 1s}));
    EXPECT_TRUE(IsExact({.algorithm = algorithm, .requests = 200, .period = 2s}));
    EXPECT_FALSE(IsExact({.algorithm = algorithm, .requests = 1, .period = 2001ms}));
  }
  EXPECT_FALSE(IsExact(
      {.algorithm = kFixedWindow, .requests = 1, .align = algorithm::Align::kCalendarMonth}));
}

TEST_F(LeaseSizingTest, APauseIsAsLongAsOneRequestTakesWithinBounds) {
  EXPECT_EQ(PauseOf({.requests = 1000, .period = 10s}), 20ms);
  EXPECT_EQ(PauseOf({.requests = 50, .period = 1s}), 20ms);
  EXPECT_EQ(PauseOf({.requests = 40, .period = 1s}), 25ms);
  EXPECT_EQ(PauseOf({.requests = 20, .period = 1s}), 50ms);
  EXPECT_EQ(PauseOf({.requests = 1, .period = 1h}), 50ms);
  EXPECT_EQ(PauseOf({.algorithm = kFixedWindow, .requests = 40, .period = 1s}), 25ms);
}

TEST_F(LeaseSizingTest, TheBucketFillsInSixteenPausesAtLeast) {
  EXPECT_EQ(PauseOf({.requests = 1000, .period = 1s, .burst = 160}), 10ms);
  EXPECT_EQ(PauseOf({.algorithm = kFixedWindow, .requests = 1000, .period = 160ms}), 10ms);
}

TEST_F(LeaseSizingTest, ALeaseLivesFivePercentShorterHere) {
  EXPECT_EQ(sizing.Life(2s), 1900ms);
  EXPECT_EQ(sizing.Life(1ns), 0ns) << "rounded down";
}

TEST_F(LeaseSizingTest, AsksForTheDemandOfOneTtlAndOf100ms) {
  EXPECT_EQ(Says(7), "ask the store");
  EXPECT_TRUE(Exact(7, Allowed(900)));
  EXPECT_EQ(Says(3), "await the answer; ask #1 of k, taking 3, for 200 or 10 of a part of 2");
}

TEST_F(LeaseSizingTest, AsksForNoMoreThanTheLimit) {
  EXPECT_EQ(Says(300), "ask the store");
  EXPECT_TRUE(Exact(300, Allowed(700)));
  EXPECT_THAT(Says(300), StartsWith("await the answer; ask #1 of k, taking 300, for 1000 or 600"));
}

TEST_F(LeaseSizingTest, LeavesEachInstanceItsPartTwice) {
  LeaseBook one_of_four({.node = 1, .keys_max = 64, .instances = [] { return 4u; }});
  const auto says = [&] {
    return Text(one_of_four.Take(
        kKey, *limit, 1, [](std::string& name) { name += "k"; }, now()));
  };
  EXPECT_EQ(says(), "ask the store");
  EXPECT_TRUE(one_of_four.OnExact(kKey, *limit, 1, Allowed(999), now()));
  EXPECT_EQ(says(), "await the answer; ask #1 of k, taking 1, for 40 or 2 of a part of 8");
}

TEST_F(LeaseSizingTest, IfFewerThan64AreLeftEachRequestAsksTheStore) {
  EXPECT_EQ(Says(11), "ask the store");
  EXPECT_TRUE(Exact(11, Allowed(63)));
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_TRUE(Exact(1, Allowed(64)));
  EXPECT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 260 or 13 of a part of 2");
}

// The store grants a part of what is left, if that is not few.
TEST_F(LeaseSizingTest, OneMessageAsksForAllThatComeBeforeTheFirstAnswer) {
  EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 40 or 2 of a part of 2");
  EXPECT_EQ(Says(), "await the answer");
}

// 12 are left. Nine requests for 13 and one for 12 came within 100 ms.
TEST_F(LeaseSizingTest, AnOverloadedKeyAsksForAQuarterOfTheDemandOfTheLastRest) {
  Overspend(Denied(10ms, 12), 13);
  EXPECT_EQ(Says(12), "await the answer; ask #1 of k, taking 12, for 1000 or 33 of a part of 1")
      << "a quarter of 129";
}

// So that the store's answer is final, and names a moment.
TEST_F(LeaseSizingTest, AnOverloadedKeyMayTakeAllOfLessThanASixteenth) {
  limit = Intern({.requests = 1600, .period = 16s});
  Overspend(Denied(10ms, 99), 200);
  EXPECT_THAT(Says(50), EndsWith("of a part of 1"));
}

TEST_F(LeaseSizingTest, AnOverloadedKeyTakesAPartOfMore) {
  limit = Intern({.requests = 1600, .period = 16s});
  Overspend(Denied(10ms, 100), 200);
  EXPECT_THAT(Says(50), EndsWith("of a part of 2"));
}

// As long as nothing was denied, the others may come first.
TEST_F(LeaseSizingTest, AKeyThatIsOnlyAskedForOftenTakesAPart) {
  limit = Intern({.requests = 16'000, .period = 160s});
  Overspend(Allowed(999), 1);
  Overspend(Allowed(999), 1);
  EXPECT_THAT(Says(50), EndsWith("of a part of 2"));
}

// The next window is full.
TEST_F(LeaseSizingTest, AfterTheEndOfItsWindowAnOverloadedKeyTakesAPart) {
  limit = Intern({.algorithm = kFixedWindow, .requests = 1000, .period = 10s});
  store::SharedAnswer denied = Denied(10ms, 12);
  denied.decision.reset_after = 10ms;
  for (const base::Duration after : {10ms - 1ns, base::Duration(10ms)}) {
    at += 10s;
    Overspend(denied, 13);
    at += after;
    EXPECT_THAT(Says(12), EndsWith(after < 10ms ? "of a part of 1" : "of a part of 2"));
    book.OnReset(kKey);
  }
}

TEST_F(LeaseSizingTest, KeysThatWereLeasedTogetherAreNotRenewedTogether) {
  constexpr uint64_t kKeys = 16;
  const auto key_of = [](uint64_t k) { return base::Hash128{k, k}; };
  for (uint64_t k = 1; k <= kKeys; ++k) {
    Take(1, key_of(k));
    ASSERT_NE(Take(1, key_of(k)).action, nullptr);
    store::SharedAnswer answer = Allowed(100'000);
    answer.grant = {.granted = 500, .ttl = 2s};
    EXPECT_EQ(book.OnGrant(key_of(k), k, answer, now()), nullptr);
  }
  uint64_t renewed = 0;
  uint64_t at_once_most = 0;
  for (at = 1500ms; at <= 1700ms; at += 10ms) {
    uint64_t at_once = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) at_once += Take(1, key_of(k)).action != nullptr ? 1u : 0u;
    renewed += at_once;
    at_once_most = std::max(at_once_most, at_once);
  }
  EXPECT_EQ(renewed, kKeys);
  EXPECT_LE(at_once_most, 4u);
}

TEST_F(LeaseSizingTest, AnExactBucketThatIsAskedForSeldomIsAskedForEachRequest) {
  limit = Intern({.requests = 100, .period = 1s});
  for (; at < 4s; at += 25ms) {
    ASSERT_EQ(Says(), "ask the store") << at / 1ms;
    EXPECT_TRUE(Exact(1, Allowed(99)));
  }
}

TEST_F(LeaseSizingTest, AnExactBucketIsAskedForEachRequestAsLongAsNoneIsDenied) {
  limit = Intern({.requests = 100, .period = 1s});
  for (int i = 0; i < 2 * AskBudget::kAtOnce; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    EXPECT_TRUE(Exact(1, Allowed(80)));
  }
}

// A quarter of nine requests for 51 and one for 50.
TEST_F(LeaseSizingTest, AnExactBucketThatIsOverloadedAsksForLeases) {
  limit = Intern({.requests = 100, .period = 1s});
  Overspend(Denied(10ms, 50), 51);
  EXPECT_EQ(Says(50), "await the answer; ask #1 of k, taking 50, for 100 or 128 of a part of 1");
  EXPECT_EQ(Grant(1, 10, 40), "");
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Says(), Not(HasSubstr("ask"))) << "and never in advance";
}

TEST_F(LeaseSizingTest, ABucketOfLessThanEightOrThatFillsWithin100msGivesNoLease) {
  const auto gives = [](const algorithm::LimitSpec& spec) {
    return LeaseSizing::IsLargeEnough(*algorithm::Limit::Make(spec));
  };
  EXPECT_TRUE(gives({.requests = 8, .period = 10s}));
  EXPECT_FALSE(gives({.requests = 7, .period = 10s}));
  EXPECT_FALSE(gives({.requests = 1000, .period = 10s, .burst = 7}));
  EXPECT_TRUE(gives({.requests = 1000, .period = 1s, .burst = 100}));
  EXPECT_FALSE(gives({.requests = 1000, .period = 1s, .burst = 99}));
  EXPECT_FALSE(gives({.algorithm = kFixedWindow, .requests = 1000, .period = 99ms}));
}

TEST_F(LeaseSizingTest, BucketsThatCannotLeaseAreAlwaysAskedOf) {
  for (const algorithm::LimitSpec& spec :
       {algorithm::LimitSpec{.algorithm = kSlidingWindowLog, .requests = 1000, .period = 10s},
        {.algorithm = kLeakyBucketQueue, .requests = 1000, .period = 10s},
        {.requests = 7, .period = 10s},
        {.algorithm = kSlidingWindowCounter,
        .requests = 1000,
        .period = 10s,
        .count_denied = true}}) {
    limit = Intern(spec);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Says(), "ask the store");
    at += 3s;
  }
}

}  // namespace lease_sizing_test
}  // namespace headgate::limiter::lease
