// No error accumulates: after 10⁹ requests the rate is still exactly requests/period, whether or
// not the interval is whole.
//
// How 10⁹ requests are simulated: c requests of cost 1 at one instant leave the bucket in the same
// state as one request of cost c (the property tests show this: remaining counts down by one each).
// The test therefore takes one burst at a time, as soon as the bucket holds it. After k requests it
// must find exactly the nanosecond that the definition gives: ceil((k − burst)·period/requests).
#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace long_run_test {

using base::Duration;
using base::Instant;

constexpr uint64_t kRequests = 1'000'000'000;
constexpr Instant kStart{1'790'000'000'123'456'789};

struct Rate {
  uint64_t requests;
  int64_t period_ns;
};

class LongRun : public ::testing::TestWithParam<Rate> {
 protected:
  LimitSpec Spec(Algorithm algorithm, uint64_t burst) const {
    return {.algorithm = algorithm,
            .requests = GetParam().requests,
            .period = Duration(GetParam().period_ns),
            .burst = burst};
  }
  // The time in which `tokens` arrive, rounded up.
  Duration TimeFor(uint64_t tokens) const {
    const auto period = static_cast<uint64_t>(GetParam().period_ns);
    return Duration(
        static_cast<int64_t>(base::CeilDiv(base::WideMul(tokens, period), GetParam().requests)));
  }
};

TEST_P(LongRun, ATokenBucketKeepsItsRateOverABillionRequests) {
  constexpr uint64_t kTaken = 10'000;
  constexpr uint64_t kBurst = 2 * kTaken;  // the bucket is never full again, so no token overflows
  const Limit limit = *Limit::Make(Spec(Algorithm::kTokenBucket, kBurst));
  BucketState state;
  testing::DequeHitLog hits;
  Instant now = kStart;
  ASSERT_TRUE(Decide(limit, state, hits, kBurst, now).allowed);
  for (uint64_t taken = kBurst; taken < kRequests; taken += kTaken) {
    now += Decide(limit, state, hits, kTaken, now).retry_after;
    ASSERT_TRUE(Decide(limit, state, hits, kTaken, now).allowed);
    ASSERT_EQ(now - kStart, TimeFor(taken + kTaken - kBurst)) << "after " << taken << " requests";
  }
}

TEST_P(LongRun, ATokenBucketKeepsItsRateOneRequestAtATime) {
  const Limit limit = *Limit::Make(Spec(Algorithm::kTokenBucket, 1));
  BucketState state;
  testing::DequeHitLog hits;
  Instant now = kStart;
  for (uint64_t taken = 0; taken < 1'000'000; ++taken) {
    now += Decide(limit, state, hits, 1, now).reset_after;
  }
  // Each request waited for a full bucket, rounded up to a nanosecond. Beyond this rounding, no
  // fraction was lost or gained.
  EXPECT_GE(now - kStart, TimeFor(1'000'000));
  EXPECT_LE(now - kStart, TimeFor(1'000'000) + Duration(1'000'000));
}

TEST_P(LongRun, AQueueGivesTheBillionthRequestItsVeryTurn) {
  constexpr uint64_t kBurst = 9'999;
  const Limit limit = *Limit::Make(Spec(Algorithm::kLeakyBucketQueue, kBurst));
  BucketState state;
  testing::DequeHitLog hits;
  Instant now = kStart;
  uint64_t taken = 0;
  while (taken < kRequests) {
    const uint64_t room = Decide(limit, state, hits, 0, now).remaining;
    const Decision decision = Decide(limit, state, hits, room, now);
    ASSERT_TRUE(decision.allowed);
    ASSERT_EQ(now + decision.wait, kStart + TimeFor(taken));
    taken += room;
    // Wait for half of the queue, so it never runs empty.
    now += TimeFor(kBurst / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, LongRun,
    ::testing::Values(Rate{7, 6'000'000'000}, Rate{3, 1'000'000'000}, Rate{30, 1'000'000'007},
                      Rate{1'000'003, 1'000'000'000}, Rate{999'999'937, 1'000'000'000},
                      Rate{4'294'967'291, 1'000'000'000}, Rate{10, 20'000'000'000}),
    [](const auto& test) {
      return std::to_string(test.param.requests) + "_per_" + std::to_string(test.param.period_ns);
    });

}  // namespace long_run_test
}  // namespace headgate::algorithm
