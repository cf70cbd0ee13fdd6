// When a node asks for a lease, how much it asks for, and when it renews.
#include "headgate/limiter/lease_sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter {
namespace lease_sizing_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::chrono_literals;

using LeaseSizingTest = testing::LeaseDialogue;

TEST_F(LeaseSizingTest, AsksSoonerAndForMoreIfThereIsPlenty) {
  limit = Intern({.requests = 1000, .period = 1s});
  Take();
  Exact(1, {.allowed = true, .limit = 1000, .remaining = 2 * 32 - 1, .reset_after = 1s});
  EXPECT_EQ(Says(), "ask the store");
  Exact(1, {.allowed = true, .limit = 1000, .remaining = 12 * 32, .reset_after = 1s});
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 12 (at least 1)")
      << "a small share of what is left";
  EXPECT_EQ(Grant(1, 4, 990), "");
  Take();
  EXPECT_EQ(Says(), "allowed, 992 left; ask #2 of k for 20 (at least 1); #1 spent 2")
      << "four times what came";
}

TEST_F(LeaseSizingTest, ALeaseIsRenewedAtAboutHalfOfItsLife) {
  Lease(50);
  at = 749ms;
  EXPECT_EQ(Says(), "allowed, 49 left");
  at = 1s;
  EXPECT_EQ(Says(), "allowed, 48 left; ask #2 of k for 5 (at least 1); #1 spent 2");
}

// Nothing accrues in a window, so a first lease of half of it would leave little for the others.
TEST_F(LeaseSizingTest, TheFirstLeaseOfAWindowLeavesTheOtherInstancesTheirParts) {
  limit = Intern({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 100, .period = 1h});
  LeaseBook one_of_four(
      {.node = 1, .keys_max = 64, .pause_spread_percent = 0, .instances = [] { return 4u; }});
  const auto says = [&] {
    return Text(one_of_four.Take(
        kKey, *limit, 10, [](std::string& name) { name += "k"; }, now()));
  };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(says(), "ask the store");
  EXPECT_EQ(says(), "await a lease; ask #1 of k for 25 (at least 10)") << "a quarter of 100";
  // From then on those count that the store knows: this instance is the only one.
  store::SharedAnswer answer;
  answer.grant = {.granted = 25, .remaining = 45, .holders = 1, .ttl = 2s};
  EXPECT_EQ(one_of_four.OnGrant(kKey, 1, answer, now()), nullptr);
  std::string said;
  while (said.find("ask #2") == std::string::npos) said = says();
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("for 25")));
}

TEST_F(LeaseSizingTest, KeysThatWereLeasedTogetherAreNotRenewedTogether) {
  constexpr uint64_t kKeys = 16;
  const auto key_of = [](uint64_t k) { return base::Hash128{k, k}; };
  store::SharedAnswer answer;
  answer.grant = {.granted = 50, .holders = 1, .ttl = 2s};
  for (uint64_t k = 1; k <= kKeys; ++k) {
    for (int i = 0; i < 4; ++i) Take(1, key_of(k));
    EXPECT_EQ(book.OnGrant(key_of(k), k, answer, now()), nullptr);
  }
  uint64_t renewed = 0;
  uint64_t at_once_most = 0;
  for (at = 750ms; at <= 1s; at += 10ms) {
    uint64_t at_once = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) at_once += Take(1, key_of(k)).action != nullptr ? 1u : 0u;
    renewed += at_once;
    at_once_most = std::max(at_once_most, at_once);
  }
  EXPECT_EQ(renewed, kKeys);
  EXPECT_LE(at_once_most, 3u);
}

TEST_F(LeaseSizingTest, ABucketWithoutRoomForALeaseDeniesNobody) {
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer full;
  full.grant = {.remaining = 94, .holders = 30, .retry_after = 1ns};
  EXPECT_EQ(Answer(1, full), "");
  EXPECT_EQ(SaysAgain(), "ask the store");
  for (; at < 1s; at += 10ms) EXPECT_EQ(Says(), "ask the store") << "nor is it asked for leases";
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
}

// 51 nodes hold something of a bucket of 100: requests held by one are missing for the others.
TEST_F(LeaseSizingTest, ABucketOfLessThanThreeForEachHolderIsExact) {
  for (int i = 0; i < 4; ++i) Take();
  store::SharedAnswer crowded;
  crowded.grant = {.granted = 1, .remaining = 40, .holders = 51, .ttl = 2s};
  EXPECT_EQ(Answer(1, crowded), "");
  EXPECT_EQ(SaysAgain(), "allowed, 40 left") << "what it has been given it spends";
  for (; at < 8s; at += 10ms) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, {.allowed = true, .limit = 100, .remaining = 40});
  }
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #2"));
}

TEST_F(LeaseSizingTest, ARequestThatCanNeverFitIsNotDemand) {
  const std::string never = "denied for 9223372036854ms";
  EXPECT_EQ(Says(1'000'000), "ask the store") << "for what is left";
  Exact(1'000'000,
        {.allowed = false, .limit = 100, .remaining = 100, .retry_after = algorithm::kNever});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Says(1'000'000), never);
  EXPECT_EQ(book.counters().asked, 0u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Says(), "ask the store");
  EXPECT_EQ(Says(), "await a lease; ask #1 of k for 3 (at least 1)") << "what the others need";
  EXPECT_EQ(Grant(1, 3), "");
  EXPECT_EQ(Says(101), never);
  EXPECT_THAT(Says(), StartsWith("allowed")) << "the lease is as it was";
  EXPECT_EQ(book.counters().asked, 1u);
}

TEST_F(LeaseSizingTest, ASmallShareIsKeptUntilItsEnd) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, {.allowed = true, .limit = 100, .remaining = 99, .reset_after = 10ms});
  }
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #1 of k for 3"));
  EXPECT_EQ(Grant(1, 3, 96), "");
  EXPECT_EQ(SaysAgain(), "allowed, 98 left");
  for (at = 125ms; at <= 1625ms; at += 125ms) EXPECT_THAT(Time(), IsEmpty()) << at.count();
  at = 1750ms;
  EXPECT_THAT(Time(), ElementsAre("ask #2 of k; #1 spent 1, returned"))
      << "nobody has asked for a second";
}

TEST_F(LeaseSizingTest, ASmallShareOfABusyKeyIsRenewedBeforeItEnds) {
  limit = Intern({.requests = 100'000, .period = 1s});
  for (int i = 0; i < 64; ++i) {
    if (i == 2) Exact(1, {.allowed = true, .limit = 100'000, .remaining = 99'000});
    Take();
  }
  EXPECT_EQ(Grant(1, 1'000, 99'000), "");
  at = 1250ms;
  EXPECT_EQ(Says(), "allowed, 99999 left") << "too early for the next";
  at = 1650ms;
  EXPECT_THAT(Says(), StartsWith("allowed, 99998 left; ask #2 of k for"));
  EXPECT_EQ(Says(), "allowed, 99997 left") << "nobody waits for it";
}

TEST_F(LeaseSizingTest, AnotherLimitIsExactForOneTtl) {
  Lease(50);
  limit = Intern({.requests = 200, .period = 1s});
  EXPECT_EQ(Says(), "ask the store; ask #2 of k; #1 spent 0, returned");
  EXPECT_EQ(Grant(2, 0), "");
  for (; at < 2s; at += 100ms) EXPECT_EQ(Says(), "ask the store");
  EXPECT_THAT(Says(), StartsWith("await a lease; ask #3 of k"));
}

TEST_F(LeaseSizingTest, SomeBucketsAreAlwaysExact) {
  using enum algorithm::Algorithm;
  for (const algorithm::LimitSpec& spec :
       {algorithm::LimitSpec{.algorithm = kSlidingWindowLog, .requests = 100, .period = 1s},
        {.algorithm = kLeakyBucketQueue, .requests = 100, .period = 1s},
        {.algorithm = kSlidingWindowCounter, .requests = 100, .period = 1s, .count_denied = true},
        {.requests = 100, .period = 1s, .burst = 7},
        {.requests = 1000, .period = 1s, .burst = 99}}) {
    limit = Intern(spec);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Says(), "ask the store");
    at += 3s;
  }
}

}  // namespace lease_sizing_test
}  // namespace headgate::limiter
