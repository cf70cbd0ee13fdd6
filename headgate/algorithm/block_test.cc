// docs/reference/algorithms.md, "block". tests/model compares the kernels with the definition over
// random steps; the tests here check each promise as a client sees it.
#include "headgate/algorithm/block.h"

#include <chrono>
#include <initializer_list>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace block_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

LimitSpec Blocking(LimitSpec spec, std::initializer_list<std::chrono::seconds> lengths) {
  for (const auto length : lengths)
    spec.block.Add(BlockLengths::Seconds(static_cast<uint32_t>(length.count())));
  return spec;
}

constexpr LimitSpec kTwoPer20s{.requests = 2, .period = 20s};

struct Key {
  Limit limit;
  BucketState state{};
  testing::DequeHitLog hits{};
  RememberedUntil remembered_until{};

  Decision Ask(Duration at, Cost cost = 1) { return Decide(limit, state, hits, cost, kStart + at); }
  // Asks until the limit denies.
  Decision Exceed(Duration at) {
    for (int i = 0; i < 100; ++i) {
      if (const Decision decision = Ask(at); !decision.allowed) return decision;
    }
    return {};
  }
};

Key KeyOf(const LimitSpec& spec) { return {*Limit::Make(spec)}; }

TEST(Block, LastsAsLongAsTheLimitSaysAndTheAnswerNamesItsEnd) {
  Key key = KeyOf(Blocking(kTwoPer20s, {600s}));
  const Decision denied = key.Exceed(0s);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, 600s);
  EXPECT_EQ(denied.blocked_for, 600s);
  EXPECT_EQ(denied.remaining, 0u);
  EXPECT_EQ(denied.reset_after, 600s);
  EXPECT_EQ(key.Ask(599s).retry_after, 1s);
  EXPECT_EQ(key.Ask(600s - 1ns).retry_after, 1ns);
  EXPECT_TRUE(key.Ask(600s).allowed);
}

TEST(Block, IsNotExtendedByALibraryThatRetriesEarly) {
  Key key = KeyOf(Blocking(kTwoPer20s, {60s}));
  key.Exceed(0s);
  for (Duration at = 1ms; at < 60s; at += 37ms) ASSERT_FALSE(key.Ask(at).allowed);
  const Decision after = key.Ask(60s);
  EXPECT_TRUE(after.allowed);
  EXPECT_EQ(after.remaining, 1u);  // as if nobody had asked meanwhile
}

TEST(Block, DoesNotPunishARetryBetweenItsEndAndTheTimeAtWhichTheBucketHasRoom) {
  Key key = KeyOf(Blocking({.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 1h},
                           {60s, 600s}));
  EXPECT_EQ(key.Exceed(0s).retry_after, 1h);  // not 60 s: it would be denied then
  for (const Duration at : {Duration(61s), Duration(120s), Duration(59min)}) {
    const Decision early = key.Ask(at);
    EXPECT_FALSE(early.allowed);
    EXPECT_FALSE(early.blocked());
    EXPECT_EQ(early.retry_after, 1h - at);
  }
  EXPECT_TRUE(key.Ask(1h).allowed);
}

TEST(Block, AClientThatWaitsAsToldAlwaysPassesUnderEveryAlgorithm) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kLeakyBucketQueue,
        Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    for (const Duration period : {Duration(20s), Duration(7min)}) {
      Key key = KeyOf(
          Blocking({.algorithm = algorithm, .requests = 3, .period = period}, {7s, 90s, 500s}));
      Duration at{0};
      for (int i = 0; i < 20; ++i) {
        const Decision denied = key.Exceed(at);
        ASSERT_FALSE(denied.allowed) << Name(algorithm);
        ASSERT_GE(denied.retry_after, 7s);
        at += denied.retry_after;
        ASSERT_TRUE(key.Ask(at).allowed) << Name(algorithm) << " round " << i;
      }
    }
  }
}

TEST(Block, GrowsOnlyWhileViolationsGoOn) {
  Key key = KeyOf(Blocking({.requests = 1, .period = 10s}, {60s, 600s, 3600s}));
  EXPECT_EQ(key.Exceed(0s).blocked_for, 60s);
  EXPECT_EQ(key.Exceed(659s).blocked_for, 600s);            // within 600 s after the end at 60 s
  EXPECT_EQ(key.Exceed(1259s).blocked_for, 3600s);          // at once
  EXPECT_EQ(key.Exceed(4859s + 3599s).blocked_for, 3600s);  // the last length repeats
  EXPECT_EQ(key.Exceed(12058s + 3600s).blocked_for, 60s);   // after an hour of quiet
  EXPECT_EQ(key.Exceed(15718s + 600s).blocked_for, 60s);    // after ten minutes
}

TEST(Block, IsBegunNeitherByALookNorByAPeekNorByARequestThatNeverFits) {
  Key key = KeyOf(Blocking(kTwoPer20s, {60s}));
  key.Ask(0s, 2);
  EXPECT_TRUE(key.Ask(0s, 0).allowed);
  BucketState copy = key.state;
  const Decision peeked = Peek(key.limit, copy, key.hits, 1, kStart);
  EXPECT_FALSE(peeked.allowed);
  EXPECT_EQ(peeked.retry_after, 10s);
  EXPECT_FALSE(copy.block.exists());
  EXPECT_TRUE(key.Ask(0s, 3).never_fits());
  EXPECT_FALSE(key.state.block.exists());
  EXPECT_TRUE(key.Ask(10s).allowed);
}

TEST(Block, IsShownByALookAndAPeek) {
  Key key = KeyOf(Blocking(kTwoPer20s, {60s}));
  key.Exceed(0s);
  const Decision look = key.Ask(20s, 0);
  EXPECT_TRUE(look.allowed);
  EXPECT_EQ(look.remaining, 0u);
  EXPECT_EQ(look.blocked_for, 40s);
  BucketState copy = key.state;
  EXPECT_EQ(Peek(key.limit, copy, key.hits, 1, kStart + 20s).retry_after, 40s);
}

TEST(Block, IsEndedByAResetAndNotByARefundOrAnUndo) {
  Key key = KeyOf(Blocking(kTwoPer20s, {60s}));
  key.Exceed(0s);
  EXPECT_EQ(Refund(key.limit, key.state, key.hits, 2, kStart)->blocked_for, 60s);
  EXPECT_EQ(Undo(key.limit, key.state, key.hits, 2, kStart, kStart)->blocked_for, 60s);
  EXPECT_FALSE(key.Ask(1s).allowed);
  Reset(key.limit, key.state, key.hits);
  EXPECT_TRUE(key.Ask(1s).allowed);
}

TEST(Block, EndsWithTheRuleAndGetsNoLongerByAChange) {
  const Limit blocks = *Limit::Make(Blocking(kTwoPer20s, {3600s}));
  const Limit shorter = *Limit::Make(Blocking(kTwoPer20s, {60s}));
  const Limit longer = *Limit::Make(Blocking(kTwoPer20s, {7200s}));
  const Limit plain = *Limit::Make(kTwoPer20s);
  Key key{blocks};
  key.Exceed(0s);
  const auto change = [&](const Limit& to, Duration at) {
    Change(key.limit, to, key.state, key.hits, key.remembered_until, kStart + at);
    key.limit = to;
  };
  change(longer, 100s);
  EXPECT_EQ(key.Ask(100s).retry_after, 3500s);
  change(shorter, 200s);
  EXPECT_EQ(key.Ask(200s).retry_after, 60s);
  change(plain, 210s);
  EXPECT_TRUE(key.Ask(210s).allowed);
  change(blocks, 211s);
  EXPECT_TRUE(key.Ask(211s).allowed);
}

TEST(Block, KeepsItsRestIfTheClockIsSetBack) {
  Key key = KeyOf(Blocking(kTwoPer20s, {600s}));
  key.Exceed(3600s);
  Rebase(key.limit, key.state, key.hits, key.remembered_until, kStart);
  EXPECT_EQ(key.Ask(0s).retry_after, 600s);
  EXPECT_TRUE(key.Ask(600s).allowed);
}

TEST(Block, MattersToAFullBucketAsLongAsItDecidesAboutTheNextOne) {
  Key once = KeyOf(Blocking(kTwoPer20s, {60s}));
  once.Exceed(0s);
  EXPECT_EQ(MattersUntil(once.limit, once.state), kStart + 60s);
  Key grows = KeyOf(Blocking(kTwoPer20s, {60s, 600s}));
  grows.Exceed(0s);
  EXPECT_EQ(MattersUntil(grows.limit, grows.state), kStart + 660s);
}

TEST(Block, StandsBesideNoOtherPenaltyAndGrantsNoLeases) {
  LimitSpec counts =
      Blocking({.algorithm = Algorithm::kFixedWindow, .requests = 1, .period = 1s}, {1s});
  EXPECT_FALSE(CanLease(*Limit::Make(counts)));
  counts.count_denied = true;
  EXPECT_EQ(Limit::ProblemWith(counts)->about, LimitProblem::About::kBlock);
  LimitSpec overdraws = Blocking({.requests = 1, .period = 1s}, {1s});
  overdraws.overdraw = true;
  EXPECT_EQ(Limit::ProblemWith(overdraws)->about, LimitProblem::About::kBlock);
}

}  // namespace block_test
}  // namespace headgate::algorithm
