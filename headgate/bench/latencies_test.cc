#include "headgate/bench/latencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "headgate/base/random.h"

namespace headgate::bench {
namespace latencies_test {

using namespace std::chrono_literals;

TEST(Latencies, AreNothingAtFirst) {
  const Latencies none;
  EXPECT_EQ(none.Quantile(0.5), 0ns);
  EXPECT_EQ(none.mean(), 0ns);
  EXPECT_EQ(none.min(), 0ns);
}

TEST(Latencies, SmallOnesAreExact) {
  Latencies latencies;
  for (int i = 1; i <= 100; ++i) latencies.Add(base::Duration(i));
  EXPECT_EQ(latencies.Quantile(0.5), 50ns);
  EXPECT_EQ(latencies.Quantile(0.99), 99ns);
  EXPECT_EQ(latencies.Quantile(0), 1ns);
  EXPECT_EQ(latencies.Quantile(1), 100ns);
  EXPECT_EQ(latencies.mean(), 50ns);
}

TEST(Latencies, QuantilesAreWithinOnePercent) {
  base::Random random(1);
  Latencies latencies;
  std::vector<int64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    const auto ns = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(39)));
    all.push_back(ns);
    latencies.Add(base::Duration(ns));
  }
  std::sort(all.begin(), all.end());
  for (const double part : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const int64_t exact = all[static_cast<size_t>(part * 20'000 + 0.5) - 1];
    const int64_t found = latencies.Quantile(part).count();
    EXPECT_GE(found, exact) << part;
    EXPECT_LE(found, exact + exact / 100 + 1) << part;
  }
}

TEST(Latencies, HaveABound) {
  Latencies latencies;
  latencies.Add(std::chrono::hours(5));
  latencies.Add(-1ns);
  EXPECT_EQ(latencies.max(), Latencies::kMax);
  EXPECT_EQ(latencies.min(), 0ns);
  EXPECT_EQ(latencies.count(), 2u);
}

}  // namespace latencies_test
}  // namespace headgate::bench
