// The rules of a round; tests/cas compares its arithmetic with the scripts of the Redis store.
#include "headgate/store/cas/bucket_round.h"

#include <gtest/gtest.h>

#include <random>

namespace headgate::store::cas {
namespace bucket_round_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kNow = Instant::FromNanos(1'790'000'000'000'000'000);

class BucketRoundTest : public ::testing::Test {
 protected:
  LimitHandle Limit(const LimitSpec& spec) {
    return *limits_.Intern(*algorithm::Limit::Make(spec));
  }
  LimitHandle Tokens(uint64_t requests) {
    return Limit({.algorithm = Algorithm::kTokenBucket, .requests = requests, .period = 10s});
  }
  // The bytes of a bucket of which `cost` was taken at kNow.
  static std::string Used(const LimitHandle& limit, algorithm::Cost cost = 1) {
    BucketRound round("", kNow);
    EXPECT_TRUE(round.Answer({.name = "k", .limit = limit, .cost = cost}).decision.allowed);
    return round.bytes();
  }

  LimitTable limits_;
};

TEST_F(BucketRoundTest, RequestsOfOneRoundAreDecidedInTheirOrder) {
  const LimitHandle limit = Tokens(3);
  BucketRound round("", kNow);
  EXPECT_EQ(round.Answer({.name = "k", .limit = limit, .cost = 2}).decision.remaining, 1u);
  EXPECT_FALSE(round.Answer({.name = "k", .limit = limit, .cost = 2}).decision.allowed);
  EXPECT_EQ(round.Answer({.name = "k", .limit = limit, .cost = 1}).decision.remaining, 0u);
  EXPECT_EQ(round.changes(), Changes::kState);
  EXPECT_EQ(round.expires_at(), kNow + 10s);
}

// Whatever the requests are, one round with all of them does what one round for each does.
TEST_F(BucketRoundTest, ARoundOfManyIsLikeManyRounds) {
  const std::vector<LimitSpec> specs = {
      {.algorithm = Algorithm::kTokenBucket, .requests = 7, .period = 10s},
      {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 7, .period = 10s, .burst = 4},
      {.algorithm = Algorithm::kFixedWindow, .requests = 7, .period = 10s, .count_denied = true},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 7, .period = 10s},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 7, .period = 10s}};
  std::mt19937_64 random(1);
  for (int walk = 0; walk < 2'000; ++walk) {
    std::string together, alone;
    Instant now = kNow;
    for (int step = 0; step < 10; ++step, now += Duration(random() % 2'000'000'000)) {
      BucketRound round(together, now);
      for (uint64_t i = random() % 6; i > 0; --i) {
        const LimitHandle limit = Limit(specs[random() % specs.size()]);
        SharedRequest request{.name = "k",
                              .limit = limit,
                              .cost = random() % 4,
                              .operation = static_cast<Operation>(random() % 4),
                              .keeps_limit = random() % 8 == 0};
        if (request.operation == Operation::kRefund &&
            limit->limit.algorithm() == Algorithm::kLeakyBucketQueue)
          continue;
        if (random() % 4 == 0 && CanLease(limit->limit))
          request.lease = {.id = {1 + random() % 3, random()},
                           .cost = random() % 4,
                           .want = random() % 5,
                           .brief = random() % 5,
                           .ttl = 2s};
        BucketRound one(alone, now);
        const SharedAnswer expected = one.Answer(request);
        alone = one.bytes();
        const SharedAnswer answer = round.Answer(request);
        ASSERT_EQ(answer.status, expected.status);
        ASSERT_EQ(answer.decision, expected.decision);
        ASSERT_EQ(answer.grant, expected.grant);
        ASSERT_EQ(answer.events, expected.events);
      }
      together = round.bytes();
      ASSERT_EQ(together, alone) << "walk " << walk << " step " << step;
    }
  }
}

TEST_F(BucketRoundTest, OnlyWhatConsumesOrGivesBackHasToBeWritten) {
  const LimitHandle limit = Tokens(2);
  const std::string used = Used(limit, 2);
  const auto changes = [&](const std::string& bucket, const SharedRequest& request) {
    BucketRound round(bucket, kNow + 1s);
    round.Answer(request);
    return round.changes();
  };
  EXPECT_EQ(changes(used, {.name = "k", .limit = limit}), Changes::kTime) << "denied";
  EXPECT_EQ(changes(used, {.name = "k", .limit = limit, .operation = Operation::kPeek}),
            Changes::kNothing);
  EXPECT_EQ(changes(used, {.name = "k", .limit = limit, .cost = 0}), Changes::kNothing);
  EXPECT_EQ(changes(used, {.name = "k", .limit = limit, .operation = Operation::kRefund}),
            Changes::kState);
  EXPECT_EQ(changes("", {.name = "k", .limit = limit, .operation = Operation::kRefund}),
            Changes::kNothing)
      << "nothing to give back";
  EXPECT_EQ(changes(used, {.name = "k", .limit = limit, .operation = Operation::kReset}),
            Changes::kState);
  EXPECT_EQ(changes("", {.name = "k", .limit = limit, .operation = Operation::kReset}),
            Changes::kNothing);
  EXPECT_EQ(changes("", {.name = "k", .limit = limit}), Changes::kState);
  EXPECT_EQ(changes("", {.name = "k", .limit = limit, .cost = 3}), Changes::kNothing)
      << "never fits";
  EXPECT_EQ(changes(used, {.name = "k", .limit = Tokens(3), .cost = 4}), Changes::kState)
      << "denied, but carried over to another limit";
  const LimitHandle counts = Limit(
      {.algorithm = Algorithm::kFixedWindow, .requests = 1, .period = 10s, .count_denied = true});
  EXPECT_EQ(changes(Used(counts), {.name = "k", .limit = counts}), Changes::kState)
      << "denied and counted";
}

TEST_F(BucketRoundTest, ALeaseThatIsAskedForTwiceIsWrittenOnce) {
  const LimitHandle limit = Tokens(10);
  const SharedRequest ask{
      .name = "k",
      .limit = limit,
      .lease = LeaseAsk{.id = {1, 1}, .cost = 3, .want = 4, .brief = 4, .ttl = 2s}};
  BucketRound first("", kNow);
  EXPECT_EQ(first.Answer(ask).grant.granted, 4u);
  EXPECT_EQ(first.changes(), Changes::kState);
  EXPECT_GE(first.expires_at(), kNow + 2s) << "kept while the lease lives";
  BucketRound second(first.bytes(), kNow);
  const SharedAnswer again = second.Answer(ask);
  EXPECT_EQ(again.grant.granted, 4u);
  EXPECT_EQ(again.decision.remaining, 3u) << "the request is taken once";
  EXPECT_EQ(second.changes(), Changes::kTime);
}

TEST_F(BucketRoundTest, NoLeaseLivesLongerThanTheFleetAllows) {
  const LimitHandle limit = Tokens(10);
  BucketRound round("", kNow);
  const SharedAnswer answer = round.Answer(
      {.name = "k",
       .limit = limit,
       .lease = LeaseAsk{.id = {1, 1}, .want = 4, .brief = 4, .ttl = std::chrono::hours(1)}});
  EXPECT_EQ(answer.grant.ttl, kTinyLeaseTtl);
}

TEST_F(BucketRoundTest, ALateReportHasToBeWrittenAndTheEndOfALeaseHasNot) {
  const LimitHandle limit = Tokens(10);
  const LeaseAsk ask{.id = {1, 1}, .want = 4, .brief = 4, .ttl = 2s};
  BucketRound first("", kNow);
  EXPECT_EQ(first.Answer({.name = "k", .limit = limit, .lease = ask}).grant.granted, 4u);
  const LeaseAsk nothing{.id = {1, 2}};
  BucketRound over(first.bytes(), kNow + 2s);
  EXPECT_EQ(over.Answer({.name = "k", .limit = limit, .lease = nothing}).decision.remaining, 6u);
  EXPECT_EQ(over.changes(), Changes::kTime) << "each round sees it by itself";
  const std::vector<algorithm::LeaseReport> returned{{.number = 1, .spent = 1, .returned = true}};
  const LeaseAsk report{.id = {1, 3}, .reports = returned};
  for (const std::string& bytes : {first.bytes(), over.bytes()}) {
    BucketRound late(bytes, kNow + 2s);
    EXPECT_EQ(late.Answer({.name = "k", .limit = limit, .lease = report}).decision.remaining, 9u);
    EXPECT_EQ(late.changes(), Changes::kState);
    BucketRound again(late.bytes(), kNow + 2s);
    EXPECT_EQ(again.Answer({.name = "k", .limit = limit, .lease = report}).decision.remaining, 9u);
    EXPECT_EQ(again.changes(), Changes::kTime) << "never twice";
  }
}

TEST_F(BucketRoundTest, TheRequestInAMessageHasToBeWritten) {
  const LimitHandle limit = Tokens(2);
  const auto changes = [&](algorithm::Cost cost) {
    BucketRound round(Used(limit, 1), kNow);
    round.Answer({.name = "k", .limit = limit, .lease = LeaseAsk{.id = {1, 1}, .cost = cost}});
    return round.changes();
  };
  EXPECT_EQ(changes(1), Changes::kState);
  EXPECT_EQ(changes(2), Changes::kTime) << "denied";
}

TEST_F(BucketRoundTest, AnUnreadableBucketIsReplacedOnce) {
  const LimitHandle limit = Tokens(2);
  for (const std::optional<std::string_view> bytes :
       {std::optional<std::string_view>("nonsense"), std::optional<std::string_view>()}) {
    BucketRound round(bytes, kNow);
    EXPECT_TRUE(round.Answer({.name = "k", .limit = limit, .operation = Operation::kPeek})
                    .events.replaced_corrupt);
    EXPECT_EQ(round.changes(), Changes::kNothing);
    const SharedAnswer first = round.Answer({.name = "k", .limit = limit});
    EXPECT_TRUE(first.events.replaced_corrupt);
    EXPECT_EQ(first.decision.remaining, 1u);
    EXPECT_FALSE(round.Answer({.name = "k", .limit = limit}).events.replaced_corrupt);
    EXPECT_FALSE(
        BucketRound(round.bytes(), kNow).Answer({.name = "k", .limit = limit}).decision.allowed);
  }
}

TEST_F(BucketRoundTest, AnEarlierClockIsNotBelieved) {
  const LimitHandle limit = Tokens(10);
  const std::string used = Used(limit, 10);
  // The bucket takes 10 s to fill: a clock that is behind by less counts as the bucket's time.
  BucketRound behind(used, kNow - 10s);
  const SharedAnswer denied = behind.Answer({.name = "k", .limit = limit});
  EXPECT_EQ(denied.decision.retry_after, 1s);
  EXPECT_FALSE(denied.events.clock_reset);
}

TEST_F(BucketRoundTest, ABucketFarAheadIsSetBackWithWhatIsLeft) {
  for (const LimitSpec& spec :
       {LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 10, .period = 10s},
        LimitSpec{
            .algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 10s, .burst = 9},
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 10s},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 10s},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 10s}}) {
    SCOPED_TRACE(Name(spec.algorithm));
    const LimitHandle limit = Limit(spec);
    BucketRound round(Used(limit, 10), kNow - 1h);
    const SharedAnswer answer = round.Answer({.name = "k", .limit = limit});
    EXPECT_TRUE(answer.events.clock_reset);
    EXPECT_FALSE(answer.decision.allowed);
    EXPECT_EQ(round.changes(), Changes::kState) << "or it would be set back again and again";
    EXPECT_LE(round.expires_at(), kNow - 1h + 20s);
    // From then on the bucket refills.
    BucketRound later(round.bytes(), kNow - 1h + 20s);
    const SharedAnswer again = later.Answer({.name = "k", .limit = limit});
    EXPECT_TRUE(again.decision.allowed);
    EXPECT_FALSE(again.events.clock_reset);
  }
}

TEST_F(BucketRoundTest, ADebtIsTakenUnderTheLimitThatTheBucketHas) {
  const LimitHandle limit = Tokens(10);
  BucketRound round(Used(limit), kNow);
  const SharedAnswer answer =
      round.Answer({.name = "k", .limit = Tokens(20), .cost = 9, .keeps_limit = true});
  EXPECT_EQ(answer.decision.limit, 10u);
  EXPECT_TRUE(answer.decision.allowed);
  EXPECT_FALSE(answer.events.carried_over);
}

TEST_F(BucketRoundTest, AChangeBackAndForthIsFollowed) {
  // 10 → 2 → 10, without a request under 2: the bucket has at most 2 left.
  const LimitHandle ten = Tokens(10);
  const LimitHandle two = Tokens(2);
  const std::string used = Used(ten);
  const std::vector<LimitChange> history{{.before = ten.get(), .at = kNow + 100ms},
                                         {.before = two.get(), .at = kNow + 200ms}};
  BucketRound round(used, kNow + 300ms);
  const SharedAnswer answer =
      round.Answer({.name = "k", .limit = ten, .cost = 3, .history = history, .now = kNow + 300ms});
  EXPECT_TRUE(answer.events.carried_over);
  EXPECT_FALSE(answer.decision.allowed);
}

TEST_F(BucketRoundTest, WhatIsAsIfNeverUsedHasNoBytes) {
  const LimitHandle limit = Tokens(2);
  BucketRound round(Used(limit), kNow + 5s);
  round.Answer({.name = "k", .limit = limit, .operation = Operation::kRefund});
  EXPECT_EQ(round.bytes(), "");
  EXPECT_EQ(round.expires_at(), kNow + 5s);
}

}  // namespace bucket_round_test
}  // namespace headgate::store::cas
