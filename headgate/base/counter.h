// Counters that one thread writes and any thread reads, without an atomic read-modify-write. Each
// counting thread has its own counters; readers add them up.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace headgate::base {

class Counter {
 public:
  void Add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Subtract(uint64_t n = 1) { Add(~n + 1); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// A histogram. counts[i] is the number of values above kBounds[i-1] and at most kBounds[i]; the
// last count is for values above all bounds.
template <const auto& kBounds>
struct Histogram {
  std::array<uint64_t, kBounds.size() + 1> counts{};
  uint64_t sum = 0;

  Histogram& operator+=(const Histogram& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
    return *this;
  }
};

// The histogram that one thread writes. `kBounds` must ascend.
template <const auto& kBounds>
class HistogramCounter {
 public:
  void Add(uint64_t value) {
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), value) - kBounds.begin();
    counts_[static_cast<size_t>(bucket)].Add();
    sum_.Add(value);
  }
  Histogram<kBounds> Read() const {
    Histogram<kBounds> read;
    for (size_t i = 0; i < counts_.size(); ++i) read.counts[i] = counts_[i].value();
    read.sum = sum_.value();
    return read;
  }

 private:
  std::array<Counter, kBounds.size() + 1> counts_;
  Counter sum_;
};

}  // namespace headgate::base
