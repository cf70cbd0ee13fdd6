#include "headgate/bench/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace headgate::bench {

size_t Latencies::BucketOf(uint64_t ns) {
  constexpr uint64_t kFirst = uint64_t{1} << kSubBits;
  if (ns < kFirst) return ns;
  const auto shift = static_cast<uint32_t>(std::bit_width(ns)) - kSubBits - 1;
  // The upper half of kFirst values, once for each shift.
  return (static_cast<size_t>(shift) << kSubBits) + static_cast<size_t>(ns >> shift);
}

uint64_t Latencies::UpperEndOf(size_t bucket) {
  constexpr size_t kFirst = size_t{1} << kSubBits;
  if (bucket < 2 * kFirst) return bucket;
  const size_t shift = (bucket >> kSubBits) - 1;
  const uint64_t within = bucket - (shift << kSubBits);
  return ((within + 1) << shift) - 1;
}

void Latencies::Add(base::Duration latency) {
  latency = std::clamp(latency, base::Duration(0), kMax);
  const auto ns = static_cast<uint64_t>(latency.count());
  ++buckets_[BucketOf(ns)];
  ++count_;
  sum_ns_ += ns;
  min_ = std::min(min_, latency);
  max_ = std::max(max_, latency);
}

base::Duration Latencies::mean() const {
  return base::Duration(count_ == 0 ? 0 : static_cast<int64_t>(sum_ns_ / count_));
}

base::Duration Latencies::Quantile(double part) const {
  if (count_ == 0) return base::Duration(0);
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_) - 1e-9)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(max_, base::Duration(static_cast<int64_t>(UpperEndOf(i))));
  }
  return max_;
}

}  // namespace headgate::bench
