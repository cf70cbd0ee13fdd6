// A small pseudo-random number generator for jitter and sampling: SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). The same seed gives the
// same numbers everywhere, so a simulation can be replayed. Nothing secret may depend on it.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::base {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // In [0, bound); 0 if bound is 0. Slightly uneven for bounds near 2^64, which is fine for jitter.
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : Next() % bound; }

  // A duration within `percent` of `d`, uniformly distributed.
  Duration Jitter(Duration d, uint32_t percent) {
    const int64_t span = d.count() / 100 * percent;
    return d - Duration(span) +
           Duration(static_cast<int64_t>(Below(2 * static_cast<uint64_t>(span) + 1)));
  }

 private:
  uint64_t state_;
};

}  // namespace headgate::base
