#include "headgate/front/resp/throttle_rate.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "headgate/algorithm/limit.h"
#include "headgate/base/wide.h"

namespace headgate::front::resp {
namespace throttle_rate_test {

using base::uint128;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ThrottleRate, UsualNumbersStayAsTheyAre) {
  const auto rate = RateOf(30, 60);
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->requests, 30u);
  EXPECT_EQ(rate->period, std::chrono::seconds(60));
  EXPECT_EQ(RateOf(4294967295, 4611686018)->requests, 4294967295u);
}

TEST(ThrottleRate, IsReducedWhereThatIsExact) {
  EXPECT_EQ(RateOf(5'000'000'000, 60)->requests, 1u);
  EXPECT_EQ(RateOf(5'000'000'000, 60)->period.count(), 12);
  EXPECT_EQ(RateOf(1'000'000, 10'000'000'000)->requests, 1u);
  EXPECT_EQ(RateOf(1'000'000, 10'000'000'000)->period, std::chrono::seconds(10'000));
}

TEST(ThrottleRate, IsRoundedDownByLessThanAMillionthElsewhere) {
  std::mt19937_64 random(1);
  int rounded = 0;
  for (int i = 0; i < 200'000; ++i) {
    // Numbers of all magnitudes.
    const auto count = static_cast<int64_t>(random() >> (1 + random() % 63)) | 1;
    const auto period_s = static_cast<int64_t>(random() >> (1 + random() % 63)) | 1;
    const auto rate = RateOf(count, period_s);
    const uint128 period = uint128{static_cast<uint64_t>(period_s)} * 1'000'000'000;
    if (!rate.ok()) {
      const bool too_slow = period / static_cast<uint64_t>(count) >= (uint64_t{1} << 62) - 1;
      const bool too_fast = static_cast<uint64_t>(count) / period >= 4095;
      EXPECT_TRUE(too_slow || too_fast) << count << " per " << period_s << " s";
      continue;
    }
    ASSERT_LE(rate->requests, std::numeric_limits<uint32_t>::max());
    ASSERT_LT(rate->period.count(), int64_t{1} << 62);
    ASSERT_GT(rate->period.count(), 0);
    // Checks period/count <= rate.period/rate.requests < period/count · (1 + 10^-6). No product
    // overflows: all are below 2^125.
    const uint128 stated = period * rate->requests;
    const uint128 held =
        uint128{static_cast<uint64_t>(rate->period.count())} * static_cast<uint64_t>(count);
    ASSERT_GE(held, stated) << count << " per " << period_s << " s";
    ASSERT_LE(held - stated, stated / 1'000'000) << count << " per " << period_s << " s";
    rounded += held != stated;
    EXPECT_TRUE(
        algorithm::Limit::Make({.requests = rate->requests, .period = rate->period, .burst = 1})
            .ok());
  }
  EXPECT_GT(rounded, 1000);
}

TEST(ThrottleRate, BeyondWhatCanBeHeldIsAnError) {
  EXPECT_FALSE(RateOf(1, kMax).ok());
  EXPECT_FALSE(RateOf(kMax, 1).ok());
  EXPECT_TRUE(RateOf(kMax, kMax).ok());
}

}  // namespace throttle_rate_test
}  // namespace headgate::front::resp
