#include "headgate/proxy/health.h"

#include <gtest/gtest.h>

namespace headgate::proxy {
namespace health_test {

using std::chrono::seconds;

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);
constexpr HealthOptions kOptions{.failures_max = 3, .out_min = seconds(1), .out_max = seconds(5)};

TEST(Health, FailuresInARowPutItOut) {
  Health health;
  health.OnFailure(kOptions, kStart);
  health.OnFailure(kOptions, kStart);
  health.OnSuccess();
  health.OnFailure(kOptions, kStart);
  health.OnFailure(kOptions, kStart);
  EXPECT_FALSE(health.IsOut(kStart));
  health.OnFailure(kOptions, kStart);
  EXPECT_TRUE(health.IsOut(kStart));
  EXPECT_TRUE(health.IsOut(kStart + seconds(1) - base::Duration(1)));
  EXPECT_FALSE(health.IsOut(kStart + seconds(1)));
}

TEST(Health, TimeDoublesUpToItsBound) {
  Health health;
  base::Instant now = kStart;
  for (int i = 0; i < 3; ++i) health.OnFailure(kOptions, now);
  for (const auto expected : {seconds(1), seconds(2), seconds(4), seconds(5), seconds(5)}) {
    EXPECT_TRUE(health.IsOut(now + expected - base::Duration(1)));
    now += expected;
    ASSERT_FALSE(health.IsOut(now));
    // One failure is enough now.
    health.OnFailure(kOptions, now);
  }
  now += seconds(5);
  health.OnSuccess();
  for (int i = 0; i < 2; ++i) health.OnFailure(kOptions, now);
  EXPECT_FALSE(health.IsOut(now)) << "a success forgives everything";
}

// Exchanges that began before it was put out may fail together.
TEST(Health, FailuresWhileItIsOutDoNotCount) {
  Health health;
  for (int i = 0; i < 100; ++i) health.OnFailure(kOptions, kStart);
  EXPECT_FALSE(health.IsOut(kStart + seconds(1)));
}

}  // namespace health_test
}  // namespace headgate::proxy
