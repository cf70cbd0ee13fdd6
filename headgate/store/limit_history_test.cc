// How a stored bucket follows the limits of its rule. algorithm::Change defines each single change.
#include "headgate/store/limit_history.h"

#include <gtest/gtest.h>

#include <array>

#include "headgate/algorithm/decide.h"

namespace headgate::store {
namespace limit_history_test {

using algorithm::Algorithm;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kBegin = Instant::FromNanos(1'790'000'000'000'000'000);
// The instance's clock is ahead of the store's by this much. It must not matter, because only ages
// count.
constexpr Duration kAhead = 40min;
constexpr LimitSpec kHundred{.requests = 100, .period = 100s};
constexpr LimitSpec kTen{.requests = 10, .period = 100s};

class LimitHistories : public ::testing::Test {
 protected:
  LimitHandle Intern(const LimitSpec& spec) { return *limits_.Intern(*Limit::Make(spec)); }

  // A bucket of `spec` with `used` requests consumed at kBegin.
  static StoredBucket Used(const LimitSpec& spec, uint64_t used) {
    StoredBucket bucket{.limit = *Limit::Make(spec)};
    EXPECT_TRUE(Decide(bucket.limit, bucket.state, bucket.hits, used, kBegin).allowed);
    return bucket;
  }
  static uint64_t Left(StoredBucket bucket, Instant now) {
    return Decide(bucket.limit, bucket.state, bucket.hits, 0, now).remaining;
  }

  LimitTable limits_;
};

TEST_F(LimitHistories, TellHowLongAgoTheSameLimitWasReplaced) {
  const LimitHandle hundred = Intern(kHundred);
  const LimitHandle ten = Intern(kTen);
  const std::array<LimitChange, 3> changes{
      LimitChange{hundred.get(), kBegin}, {ten.get(), kBegin + 3s}, {hundred.get(), kBegin + 5s}};
  const std::span<const LimitChange> all(changes);
  const Instant now = kBegin + 9s;
  EXPECT_EQ(LimitHistory(all, hundred->limit, now).replaced_ago(), 4s) << "the last time";
  EXPECT_EQ(LimitHistory(all, ten->limit, now).replaced_ago(), 6s);
  EXPECT_EQ(LimitHistory({}, ten->limit, now).replaced_ago(), LimitHistory::kNeverReplaced);
  // A request in the nanosecond of the change counts as one after it.
  const LimitHistory at_once(all, hundred->limit, kBegin + 5s);
  EXPECT_EQ(at_once.replaced_ago(), 1ns);
  EXPECT_EQ(at_once.asked_at(), kBegin + 5s + 1ns);
}

TEST_F(LimitHistories, CarryABucketThroughTheChangesSinceItWasSeenEachAtItsOwnMoment) {
  const LimitHandle hundred = Intern(kHundred);
  const LimitHandle ten = Intern(kTen);
  // 50 of 100 are left. At 20 s there are 70 of 100, which become 10 of 10; at 40 s these become 10
  // of 100.
  const std::array<LimitChange, 2> changes{LimitChange{hundred.get(), kBegin + kAhead + 20s},
                                           {ten.get(), kBegin + kAhead + 40s}};
  const Instant now = kBegin + 45s;
  StoredBucket bucket = Used(kHundred, 50);
  LimitHistory(changes, hundred->limit, now + kAhead).CarryOver(hundred->limit, now, bucket);
  EXPECT_EQ(bucket.limit.spec(), kHundred);
  EXPECT_EQ(Left(bucket, now), 15u);

  // A bucket that was seen after the first change has been through it already.
  StoredBucket later = Used(kTen, 10);
  later.state.seen = kBegin + 30s;
  LimitHistory(changes, hundred->limit, now + kAhead).CarryOver(hundred->limit, now, later);
  EXPECT_EQ(Left(later, now), 4u + 5u) << "4 of 10 at 40 s";
}

TEST_F(LimitHistories, CarryABucketOfAnUnknownLimitAsOfNow) {
  StoredBucket bucket = Used(kHundred, 95);
  LimitHistory({}, *Limit::Make(kTen), kBegin).CarryOver(*Limit::Make(kTen), kBegin + 2s, bucket);
  EXPECT_EQ(bucket.limit.spec(), kTen);
  EXPECT_EQ(Left(bucket, kBegin + 2s), 7u);
}

TEST_F(LimitHistories, CountWhatIsOutOnLeaseBeforeAndAfter) {
  const Instant now = kBegin + 1s;
  const auto carried = [&](const LimitSpec& to) {
    StoredBucket bucket = Used(kHundred, 70);
    bucket.leases = {{.id = {1, 1}, .granted = 40, .reported = 10, .expires_at = now + 1s},
                     {.id = {1, 2}, .granted = 5, .reported = 5, .expires_at = now}};
    LimitHistory({}, *Limit::Make(to), now).CarryOver(*Limit::Make(to), now, bucket);
    return bucket;
  };
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
    const StoredBucket bucket = carried({.algorithm = algorithm, .requests = 40, .period = 50s});
    ASSERT_EQ(bucket.leases.size(), 1u) << "the other is over";
    EXPECT_EQ(bucket.leases[0].outstanding(), 30u);
    EXPECT_EQ(Left(bucket, now), 10u) << "30 of 40 are out";
  }
  const StoredBucket log =
      carried({.algorithm = Algorithm::kSlidingWindowLog, .requests = 40, .period = 50s});
  EXPECT_TRUE(log.leases.empty());
  EXPECT_EQ(log.state.count, 30u);
  EXPECT_EQ(log.hits.Newest().at, now + 1s) << "counts as spent when the last lease ends";
}

}  // namespace limit_history_test
}  // namespace headgate::store
