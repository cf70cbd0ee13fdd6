#include "headgate/limiter/size_charge.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headgate::limiter {
namespace size_charge_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::Limit;
using base::Instant;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

// The units that go back of one of a limit of 5 per minute, if nothing was used. `number` tells
// the buckets apart.
Cost GivenBack(Algorithm algorithm, base::Duration after, uint64_t number) {
  const SizeTake take{
      .key = {.low = number, .high = 1},
      .limit =
          *Limit::Make({.algorithm = algorithm, .requests = 5, .period = std::chrono::minutes(1)}),
      .taken = 1};
  SizeCharge charge({}, take, kStart);
  const SizeCharge::Correction correction = charge.CorrectTo(0, kStart + after);
  EXPECT_EQ(correction.surplus, 1u);
  return correction.returnable;
}

Cost GivenBackOf10000(Algorithm algorithm, base::Duration after) {
  Cost sum = 0;
  for (uint64_t i = 0; i < 10'000; ++i) sum += GivenBack(algorithm, after, i);
  return sum;
}

// A unit comes back in 12 s.
TEST(SizeCharge, GivesBackInTheMeanWhatTheBucketHasNotRefilled) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kLeakyBucket}) {
    EXPECT_EQ(GivenBackOf10000(algorithm, 0s), 10'000u);
    EXPECT_GE(GivenBackOf10000(algorithm, 7ms), 9'950u) << "all but one in 1,714";
    EXPECT_NEAR(static_cast<double>(GivenBackOf10000(algorithm, 3s)), 7'500, 300);
    EXPECT_NEAR(static_cast<double>(GivenBackOf10000(algorithm, 9s)), 2'500, 300);
    EXPECT_EQ(GivenBackOf10000(algorithm, 12s), 0u);
  }
}

// A request costs what was used, or what has come back by itself if that is more, at most what was
// taken; only the last part of a unit is left to chance. One unit comes back each second.
TEST(SizeCharge, CostsWhatWasUsedOrWhatHasComeBackMeanwhile) {
  constexpr Cost kTaken = 8;
  const Limit limit = *Limit::Make({.requests = 60, .period = std::chrono::minutes(1)});
  for (Cost used = 0; used <= kTaken; ++used) {
    for (int64_t tenths = 0; tenths <= 100; ++tenths) {
      const SizeTake take{.key = {.low = static_cast<uint64_t>(tenths), .high = 1},
                          .cost = {.per_bytes = 1024},
                          .limit = limit,
                          .taken = kTaken};
      SizeCharge charge({}, take, kStart);
      // The last unit has only begun.
      const uint64_t bytes = used == 0 ? 0 : (used - 1) * 1024 + 1;
      const Cost cost = kTaken - charge.CorrectTo(bytes, kStart + tenths * 100ms).returnable;
      const Cost back_down = static_cast<Cost>(tenths / 10);
      const Cost back_up = static_cast<Cost>((tenths + 9) / 10);
      EXPECT_GE(cost, used) << tenths;
      EXPECT_GE(cost, std::min(kTaken, std::max(used, back_down))) << used << ' ' << tenths;
      EXPECT_LE(cost, std::min(kTaken, std::max(used, back_up))) << used << ' ' << tenths;
    }
  }
}

TEST(SizeCharge, OfAWindowGoesBackWithinIt) {
  EXPECT_EQ(GivenBackOf10000(Algorithm::kFixedWindow, 7ms), 10'000u);
}

// A long stream is corrected often. Each time counts only the time since the last one.
TEST(SizeCharge, OftenCorrectedLosesNoUnitsToRounding) {
  Cost sum = 0;
  for (uint64_t number = 0; number < 100; ++number) {
    const SizeTake take{.key = {.low = number, .high = 1},
                        .limit = *Limit::Make({.requests = 50, .period = std::chrono::minutes(1)}),
                        .taken = 50};
    SizeCharge charge({}, take, kStart);
    // 120 times 0.1 s: 10 units have come back.
    for (int i = 1; i <= 120; ++i) charge.CorrectTo(50, kStart + i * 100ms);
    sum += charge.CorrectTo(0, kStart + 12s).returnable;
  }
  EXPECT_NEAR(static_cast<double>(sum), 4'000, 150);
}

}  // namespace size_charge_test
}  // namespace headgate::limiter
