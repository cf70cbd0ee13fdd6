// Special cases: counting denied requests, limits of 0, a full log, and FreshAt.
#include "headgate/algorithm/decide.h"

#include <chrono>

#include "headgate/algorithm/no_hits.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace decide_test {

using base::Duration;
using base::Instant;
using std::chrono::seconds;
using testing::DequeHitLog;

Instant At(int64_t s) { return Instant::FromNanos(s * 1'000'000'000); }

TEST(FixedWindow, CountsTheWholeCostOfADeniedRequestWhenAskedTo) {
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kFixedWindow,
                                    .requests = 5,
                                    .period = seconds(10),
                                    .count_denied = true});
  BucketState state;
  DequeHitLog hits;
  EXPECT_EQ(Decide(limit, state, hits, 3, At(1)).remaining, 2u);
  EXPECT_FALSE(Decide(limit, state, hits, 4, At(1)).allowed);
  EXPECT_FALSE(Decide(limit, state, hits, 1, At(9)).allowed) << "3 + 4 are counted";
  EXPECT_TRUE(Decide(limit, state, hits, 5, At(10)).allowed);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Decide(limit, state, hits, ~Cost{0}, At(10)).allowed);
  EXPECT_FALSE(Decide(limit, state, hits, 1, At(10)).allowed)
      << "the count saturates, it does not wrap";
}

TEST(FixedWindow, AFirstHitWindowIsNotOpenedByADeniedRequest) {
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kFixedWindow,
                                    .requests = 5,
                                    .period = seconds(10),
                                    .align = Align::kFirstHit,
                                    .count_denied = true});
  BucketState state;
  DequeHitLog hits;
  const Decision denied = Decide(limit, state, hits, 6, At(1));
  EXPECT_EQ(denied.retry_after, kNever);
  EXPECT_EQ(denied.reset_after, Duration(0));
  EXPECT_EQ(Decide(limit, state, hits, 1, At(3)).reset_after, seconds(10));
}

TEST(SlidingWindowCounter, TellsADeniedRequestThatCountsWhenItWouldReallyPass) {
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kSlidingWindowCounter,
                                    .requests = 4,
                                    .period = seconds(10),
                                    .count_denied = true});
  BucketState state;
  DequeHitLog hits;
  EXPECT_TRUE(Decide(limit, state, hits, 3, At(0)).allowed);
  // Now 3 + 2 are counted. In the next window 2 more fit when at most 2 of these 5 still weigh in:
  // 5·(10 s − x)/10 s ≤ 2, so x = 6 s.
  EXPECT_EQ(Decide(limit, state, hits, 2, At(0)).retry_after, seconds(16));
  EXPECT_TRUE(Decide(limit, state, hits, 2, At(16)).allowed);
}

TEST(SlidingWindowLog, DeniesRatherThanForgetsWhereItHasNoRoom) {
  const Limit limit = *Limit::Make(
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(10)});
  BucketState state;
  DequeHitLog hits(2);
  EXPECT_TRUE(Decide(limit, state, hits, 1, At(1)).allowed);
  EXPECT_TRUE(Decide(limit, state, hits, 1, At(2)).allowed);
  const Decision denied = Decide(limit, state, hits, 1, At(3));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, seconds(8)) << "when the oldest leaves";
  EXPECT_EQ(denied.remaining, 8u);
  EXPECT_TRUE(Decide(limit, state, hits, 1, At(11)).allowed);
}

TEST(SlidingWindowLog, GivesBackItsNewestHitsFirst) {
  const Limit limit = *Limit::Make(
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(10)});
  BucketState state;
  DequeHitLog hits;
  Decide(limit, state, hits, 4, At(1));
  Decide(limit, state, hits, 4, At(5));
  EXPECT_EQ(Refund(limit, state, hits, 6, At(6))->reset_after, seconds(5))
      << "2 of those at 1 s are left";
  EXPECT_EQ(Decide(limit, state, hits, 0, At(11)).remaining, 10u);
}

TEST(Change, CountsDownFromARaisedWindowAtOnce) {
  const LimitSpec ten{.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = seconds(10)};
  LimitSpec hundred = ten;
  hundred.requests = 100;
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  Decide(*Limit::Make(ten), state, hits, 10, At(1));
  Change(*Limit::Make(ten), *Limit::Make(hundred), state, hits, remembered_until, At(2));
  EXPECT_EQ(Decide(*Limit::Make(hundred), state, hits, 0, At(2)).remaining, 90u);
}

TEST(Change, StartsABucketOfAnotherPeriodWithTheSmallerOfRestAndCapacity) {
  const Limit from = *Limit::Make({.requests = 10, .period = seconds(10)});
  const Limit to = *Limit::Make({.requests = 100, .period = seconds(60)});
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  Decide(from, state, hits, 7, At(1));
  Change(from, to, state, hits, remembered_until, At(1) + Duration(1'999'999'999));
  EXPECT_EQ(Decide(to, state, hits, 0, At(3)).remaining, 4u)
      << "3 + 1.99… tokens, of which whole ones count";
}

TEST(Change, LeavesABucketThatWasNeverAskedAsItIs) {
  const Limit from = *Limit::Make({.requests = 1, .period = seconds(10)});
  const Limit to = *Limit::Make({.requests = 100, .period = seconds(10)});
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  Change(from, to, state, hits, remembered_until, At(5));
  EXPECT_EQ(Decide(to, state, hits, 0, At(5)).remaining, 100u);
  Decide(to, state, hits, 50, At(6));
  Reset(to, state, hits);
  EXPECT_EQ(state, BucketState{});
}

TEST(Change, ToNoRequestsAndBackIsRememberedAsLongAsItMatters) {
  const LimitSpec ten{.requests = 10, .period = seconds(10)};
  LimitSpec none = ten;
  none.requests = 0;
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  Decide(*Limit::Make(ten), state, hits, 10, At(1));
  Change(*Limit::Make(ten), *Limit::Make(none), state, hits, remembered_until, At(2));
  EXPECT_EQ(remembered_until, At(11)) << "when the old limit would have had it full";
  Change(*Limit::Make(none), *Limit::Make(ten), state, hits, remembered_until, At(3));
  const Decision decision = Decide(*Limit::Make(ten), state, hits, 1, At(3));
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.retry_after, seconds(1));
}

TEST(Change, StartsABucketFullThatIsFullUnderEveryLimitItHad) {
  const Limit hundred = *Limit::Make({.requests = 100, .period = seconds(60)});
  const Limit ten = *Limit::Make({.requests = 10, .period = seconds(60)});
  for (const int back_at : {50, 51}) {
    BucketState state;
    DequeHitLog hits;
    RememberedUntil remembered_until{};
    EXPECT_EQ(Decide(hundred, state, hits, 85, At(1)).remaining, 15u);
    Change(hundred, ten, state, hits, remembered_until, At(1));
    EXPECT_EQ(Decide(ten, state, hits, 0, At(1)).remaining, 10u);
    EXPECT_EQ(FreshAt(ten, state, hits), At(1)) << "full as it is, it must not be forgotten yet";
    EXPECT_EQ(remembered_until, At(52)) << "when the 85 would have been back";
    Change(ten, hundred, state, hits, remembered_until, At(1 + back_at));
    EXPECT_EQ(Decide(hundred, state, hits, 0, At(1 + back_at)).remaining,
              back_at < 51 ? 10u : 100u);
  }
}

TEST(Change, StartsAnIdleBucketFullWhetherOrNotItWasForgotten) {
  const Limit one = *Limit::Make({.requests = 1, .period = seconds(1)});
  const Limit ten = *Limit::Make({.requests = 10, .period = seconds(1)});
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  EXPECT_TRUE(Decide(one, state, hits, 1, At(1)).allowed);
  Change(one, ten, state, hits, remembered_until, At(61));
  EXPECT_EQ(Decide(ten, state, hits, 0, At(61)).remaining, 10u);
}

TEST(Change, MovesHitsOnlyBetweenLogs) {
  const Limit log = *Limit::Make(
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(10)});
  const Limit tokens = *Limit::Make({.requests = 20, .period = seconds(10)});
  BucketState state;
  DequeHitLog hits;
  RememberedUntil remembered_until{};
  Decide(log, state, hits, 4, At(1));
  Change(log, tokens, state, hits, remembered_until, At(2));
  EXPECT_TRUE(hits.empty());
  EXPECT_EQ(Decide(tokens, state, hits, 0, At(2)).remaining, 6u);
  Change(tokens, log, state, hits, remembered_until, At(2));
  EXPECT_EQ(hits.size(), 1u);
  EXPECT_EQ(Decide(log, state, hits, 0, At(2)).remaining, 6u);
}

TEST(FreshAt, IsTheEndOfEverythingThatIsRemembered) {
  DequeHitLog hits;
  const auto fresh_at = [&](const LimitSpec& spec) {
    const Limit limit = *Limit::Make(spec);
    BucketState state;
    EXPECT_LE(FreshAt(limit, state, hits), At(0));
    Decide(limit, state, hits, 2, At(13));
    return FreshAt(limit, state, hits);
  };
  EXPECT_EQ(fresh_at({.requests = 10, .period = seconds(10)}), At(15));
  EXPECT_EQ(fresh_at({.requests = 3, .period = seconds(10)}), At(13) + Duration(6'666'666'667));
  EXPECT_EQ(
      fresh_at({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = seconds(10)}),
      At(15));
  EXPECT_EQ(fresh_at({.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = seconds(10)}),
            At(20));
  EXPECT_EQ(fresh_at({.algorithm = Algorithm::kFixedWindow,
                      .requests = 10,
                      .period = seconds(10),
                      .align = Align::kFirstHit}),
            At(23));
  EXPECT_EQ(
      fresh_at(
          {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = seconds(10)}),
      At(30));
  EXPECT_EQ(
      fresh_at({.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(10)}),
      At(23));
}

TEST(Rebase, BringsABucketOfTheFutureBackWithWhatWasLeft) {
  for (const auto algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    const Limit limit =
        *Limit::Make({.algorithm = algorithm, .requests = 10, .period = seconds(10)});
    BucketState state;
    DequeHitLog hits;
    const uint64_t remaining = Decide(limit, state, hits, 4, At(1000)).remaining;
    RememberedUntil remembered_until{At(1007)};
    Rebase(limit, state, hits, remembered_until, At(50));
    EXPECT_EQ(remembered_until, At(57));
    EXPECT_EQ(Decide(limit, state, hits, 0, At(50)).remaining, remaining) << Name(algorithm);
    EXPECT_EQ(Decide(limit, state, hits, 0, At(80)).remaining,
              limit.capacity() + (algorithm == Algorithm::kLeakyBucketQueue))
        << Name(algorithm);
  }
}

TEST(DecideTest, ALimitOfNothingStatesNothingWhateverItsBurst) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kLeakyBucketQueue}) {
    const Limit limit = *Limit::Make(
        {.algorithm = algorithm, .requests = 0, .period = std::chrono::minutes(1), .burst = 5});
    for (const Cost cost : {Cost{0}, Cost{1}}) {
      BucketState state{};
      NoHits hits;
      const Decision decision =
          Decide(limit, state, hits, cost, base::Instant::FromNanos(1'790'000'000'000'000'000));
      EXPECT_EQ(decision.allowed, cost == 0);
      EXPECT_EQ(decision.limit, 0u);
      EXPECT_EQ(decision.remaining, 0u);
      EXPECT_EQ(decision.retry_after, cost == 0 ? base::Duration(0) : kNever);
      EXPECT_EQ(decision.reset_after, base::Duration(0));
    }
  }
}

// Ten a minute and a burst of five: a token comes back every six seconds.
// The definition: the shortest wait after which a peek has more left than now.
void ExpectMoreExactlyAfter(const Limit& limit, const BucketState& state, DequeHitLog& hits,
                            const Decision& decision, Instant now) {
  const auto left = [&](Instant at) {
    BucketState later = state;
    return Decide(limit, later, hits, 0, at).remaining;
  };
  ASSERT_GT(decision.more_after, Duration(0));
  EXPECT_LE(left(now + decision.more_after - Duration(1)), decision.remaining);
  EXPECT_GT(left(now + decision.more_after), decision.remaining);
}

TEST(MoreAfter, OfASlidingCounterIsWhenOneMoreFits) {
  const Limit limit = *Limit::Make(
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = seconds(60)});
  BucketState state;
  DequeHitLog hits;
  // 8 of the window before still count as 6 at 15 s, and as 5 from 22.5 s on.
  Decide(limit, state, hits, 8, At(1'790'000'040 - 30));
  Decision decision = Decide(limit, state, hits, 0, At(1'790'000'040 + 15));
  EXPECT_EQ(decision.remaining, 4u);
  EXPECT_EQ(decision.more_after, std::chrono::milliseconds(7500));
  ExpectMoreExactlyAfter(limit, state, hits, decision, At(1'790'000'055));
  for (int i = 0; i < 6; ++i) {
    decision = Decide(limit, state, hits, 1, At(1'790'000'055 + 3 * i));
    ExpectMoreExactlyAfter(limit, state, hits, decision, At(1'790'000'055 + 3 * i));
  }
  EXPECT_EQ(Decide(limit, state, hits, 0, At(1'790'000'400)).more_after, Duration(0));
}

TEST(MoreAfter, OfASlidingLogIsWhenItsOldestHitExpires) {
  const Limit limit = *Limit::Make(
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(60)});
  BucketState state;
  DequeHitLog hits;
  EXPECT_EQ(Decide(limit, state, hits, 0, At(1000)).more_after, Duration(0));
  EXPECT_EQ(Decide(limit, state, hits, 3, At(1000)).more_after, seconds(60));
  EXPECT_EQ(Decide(limit, state, hits, 1, At(1020)).more_after, seconds(40));
  EXPECT_EQ(Decide(limit, state, hits, 0, At(1070)).more_after, seconds(10));
}

TEST(MoreAfter, IsTheTimeOfTheNextTokenHoweverManyAreMissing) {
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kTokenBucket,
                                    .requests = 10,
                                    .period = std::chrono::minutes(1),
                                    .burst = 5});
  BucketState state{};
  NoHits hits;
  const Instant start = Instant::FromNanos(1'790'000'000'000'000'000);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(MoreAfter(limit, Decide(limit, state, hits, 1, start)), seconds(6)) << i;
  EXPECT_EQ(MoreAfter(limit, Decide(limit, state, hits, 0, start + seconds(2))), seconds(4));
  EXPECT_EQ(MoreAfter(limit, Decide(limit, state, hits, 0, start + seconds(30))), seconds(0));
}

}  // namespace decide_test
}  // namespace headgate::algorithm
