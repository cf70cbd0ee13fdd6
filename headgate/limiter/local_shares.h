// This instance's part of a limit, which a rule is held to while the shared store cannot be
// reached.
//
// The parts of all instances add up to no more than the limit: the rate of a bucket is divided
// exactly, its burst and the requests of a window are rounded down. At least one request is a part
// of anything; a window of fewer requests than there are instances is as many times longer for
// that, but where it is a calendar's.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

// `numerator` parts of `denominator`, neither 0; numerator ≤ denominator.
struct Fraction {
  uint32_t numerator = 1;
  uint32_t denominator = 1;
};

// A valid limit. The whole limit if no part of it is valid, which takes periods of decades.
algorithm::LimitSpec PartOf(const algorithm::LimitSpec& whole, Fraction fraction);

// Remembers the parts that are in use. Not thread-safe; the table must outlive it.
class LocalShares {
 public:
  explicit LocalShares(store::LimitTable& limits) : limits_(limits) {}

  // The limit itself where the table has no place for its part.
  store::LimitHandle Of(const store::LimitHandle& whole, Fraction fraction);

 private:
  static constexpr size_t kPartsMax = 4096;

  struct Part {
    store::LimitHandle whole;  // pinned, so that its number is nobody else's
    Fraction fraction;
    store::LimitHandle part;
  };

  store::LimitTable& limits_;
  // By the number of the whole: its latest part, since the number of instances seldom changes.
  absl::flat_hash_map<uint32_t, Part> parts_;
};

}  // namespace headgate::limiter
