// Counts latencies in buckets whose width grows with the value, so that every quantile is known to
// within 1 % (log-linear, as in HdrHistogram).
#pragma once

#include <array>
#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::bench {

// Not thread-safe.
class Latencies {
 public:
  // Larger values count as this one.
  static constexpr base::Duration kMax = std::chrono::minutes(10);

  void Add(base::Duration latency);
  void Clear() { *this = {}; }

  uint64_t count() const { return count_; }
  base::Duration min() const { return count_ == 0 ? base::Duration(0) : min_; }
  base::Duration max() const { return max_; }
  base::Duration mean() const;
  // The smallest value that at least this part of all latencies does not exceed, rounded up by at
  // most 1 %; `part` is 0 to 1.
  base::Duration Quantile(double part) const;

 private:
  // 128 buckets for each power of two from 2^7 ns on; below it one for each nanosecond.
  static constexpr uint32_t kSubBits = 7;
  static constexpr size_t kBuckets = size_t{36} << kSubBits;

  static size_t BucketOf(uint64_t ns);
  static uint64_t UpperEndOf(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  base::Duration min_{base::Duration::max()};
  base::Duration max_{0};
};

}  // namespace headgate::bench
