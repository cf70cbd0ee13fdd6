// Leads a kernel and the reference model along the same random path and compares every answer.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"
#include "tests/model/reference_model.h"

namespace headgate::model {

using Random = std::mt19937_64;

// Uniform in [low, high]. Gives the same numbers everywhere, unlike the distributions of the
// standard library.
inline uint64_t Between(Random& random, uint64_t low, uint64_t high) {
  const uint64_t range = high - low + 1;
  return low + (range == 0 ? random() : random() % range);
}
// True once in `n`.
inline bool OneIn(Random& random, uint64_t n) { return random() % n == 0; }
// Below 2^bits; all orders of magnitude are equally likely.
inline uint64_t AnySize(Random& random, uint64_t bits) {
  const uint64_t size = Between(random, 0, bits);
  return size == 0 ? 0 : random() >> (64 - size);
}

// A limit that Limit::Make accepts: whole and odd intervals, usual and extreme sizes, up to the
// bounds.
algorithm::LimitSpec RandomSpec(Random& random, algorithm::Algorithm algorithm);
// A possible change of `spec`; algorithm and period mostly stay.
algorithm::LimitSpec RandomChange(Random& random, const algorithm::LimitSpec& spec);

// A step of time that is likely to meet an edge: none, the moment at which the last answer promised
// admission or a full bucket, an interval, or the edge of a window, each also a nanosecond off; or
// any time. Backward steps are below 2^back_bits. In ns.
int64_t RandomTimeStep(Random& random, const algorithm::LimitSpec& spec,
                       const algorithm::Decision& last, int64_t now, uint64_t back_bits);

std::string Describe(const algorithm::LimitSpec& spec);
std::string Describe(const algorithm::Decision& decision);

// Walks `steps` steps under limits that begin with `algorithm`, with a new bucket every few
// hundred. Returns a description of the first difference and the steps that led to it; empty if
// there is none.
std::string WalkAndCompare(uint64_t seed, algorithm::Algorithm algorithm, uint64_t steps);

}  // namespace headgate::model
