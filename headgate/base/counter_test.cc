#include "headgate/base/counter.h"

#include <gtest/gtest.h>

namespace headgate::base {
namespace counter_test {

constexpr std::array<uint64_t, 3> kBounds = {1, 10, 100};

TEST(Counter, GoesUpAndDown) {
  Counter counter;
  counter.Add();
  counter.Add(5);
  counter.Subtract(2);
  EXPECT_EQ(counter.value(), 4u);
}

TEST(HistogramCounter, CountsUpToEachBoundAndBeyondTheLast) {
  HistogramCounter<kBounds> counter;
  for (const uint64_t value : {0u, 1u, 2u, 10u, 11u, 100u, 101u, 1000u}) counter.Add(value);
  Histogram<kBounds> read = counter.Read();
  EXPECT_EQ(read.counts, (std::array<uint64_t, 4>{2, 2, 2, 2}));
  EXPECT_EQ(read.sum, 1225u);
  read += counter.Read();
  EXPECT_EQ(read.counts[3], 4u);
  EXPECT_EQ(read.sum, 2450u);
}

}  // namespace counter_test
}  // namespace headgate::base
