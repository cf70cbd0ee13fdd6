// This instance's part of a limit, which applies while the shared store cannot be reached.
//
// The parts of all instances add up to at most the limit: the rate of a bucket is divided exactly;
// its burst and the requests of a window are rounded down. Every part has at least one request. If
// a window has fewer requests than there are instances, the part's window is longer instead, except
// for calendar windows.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter::shared {

// `numerator` parts out of `denominator`; neither is 0, and numerator ≤ denominator.
struct Fraction {
  uint32_t numerator = 1;
  uint32_t denominator = 1;
};

inline constexpr uint32_t kWholePpm = 1'000'000;

// Returns a valid limit. It is the whole limit if no part of it is valid, which takes periods of
// decades.
algorithm::LimitSpec PartOf(const algorithm::LimitSpec& whole, Fraction fraction);

// Remembers the parts that are in use. Not thread-safe; the table must outlive it.
class LocalShares {
 public:
  explicit LocalShares(store::LimitTable& limits) : limits_(limits) {}

  // Returns the limit itself if the table has no place for its part.
  store::LimitHandle Of(const store::LimitHandle& whole, Fraction fraction);

 private:
  static constexpr size_t kPartsMax = 4096;

  struct Part {
    store::LimitHandle whole;  // pinned, so that no other limit gets its number
    Fraction fraction;
    store::LimitHandle part;
  };

  store::LimitTable& limits_;
  // By the number of the whole limit: its latest part. The number of instances seldom changes.
  absl::flat_hash_map<uint32_t, Part> parts_;
};

}  // namespace headgate::limiter::shared
