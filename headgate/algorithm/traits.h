// The algorithms, one row each: their names, and everything about them that other folders need to
// know without knowing the arithmetic. An algorithm is added here first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::algorithm {

enum class Algorithm : uint8_t {
  kTokenBucket,  // also called GCRA
  kLeakyBucket,  // as a meter: decides exactly like the token bucket
  kLeakyBucketQueue,
  kFixedWindow,
  kSlidingWindowCounter,
  kSlidingWindowLog,
};
inline constexpr size_t kAlgorithmCount = 6;

// The form of the state that is kept for a key.
enum class StateForm : uint8_t {
  kBucket,   // the instant at which it is full again
  kWindow,   // the end of a window, and its count
  kWindows,  // the counts of two windows
  kHits,     // the instant of each hit
};

struct Traits {
  Algorithm algorithm;
  std::string_view name;  // in messages and test data
  // In rule files, where the queue is a mode of the leaky bucket.
  std::string_view word;
  StateForm state;
  // Requests wait for their turn. A turn that was promised is not taken back.
  bool queues = false;
  // A refund or an undo gives back exactly the cost that was taken, whatever was taken since.
  bool refunds_exactly = true;
  // The stores record leases in its buckets. Otherwise all leased requests count as spent when the
  // last lease ends.
  bool keeps_leases = true;
};

inline constexpr std::array<Traits, kAlgorithmCount> kAllTraits{{
    {.algorithm = Algorithm::kTokenBucket,
     .name = "token_bucket",
     .word = "token_bucket",
     .state = StateForm::kBucket},
    {.algorithm = Algorithm::kLeakyBucket,
     .name = "leaky_bucket",
     .word = "leaky_bucket",
     .state = StateForm::kBucket},
    {.algorithm = Algorithm::kLeakyBucketQueue,
     .name = "leaky_bucket_queue",
     .word = "leaky_bucket",
     .state = StateForm::kBucket,
     .queues = true,
     .refunds_exactly = false,
     .keeps_leases = false},
    {.algorithm = Algorithm::kFixedWindow,
     .name = "fixed_window",
     .word = "fixed_window",
     .state = StateForm::kWindow},
    {.algorithm = Algorithm::kSlidingWindowCounter,
     .name = "sliding_window_counter",
     .word = "sliding_window_counter",
     .state = StateForm::kWindows},
    {.algorithm = Algorithm::kSlidingWindowLog,
     .name = "sliding_window_log",
     .word = "sliding_window_log",
     .state = StateForm::kHits,
     .refunds_exactly = false,
     .keeps_leases = false},
}};

constexpr const Traits& TraitsOf(Algorithm algorithm) {
  return kAllTraits[static_cast<size_t>(algorithm)];
}

constexpr bool IsQueue(Algorithm algorithm) { return TraitsOf(algorithm).queues; }
// Token bucket, meter or queue: capacity returns at a steady rate.
constexpr bool IsBucket(Algorithm algorithm) {
  return TraitsOf(algorithm).state == StateForm::kBucket;
}
// Token bucket or meter: two names for the same arithmetic.
constexpr bool IsTokenBucket(Algorithm algorithm) {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket;
}
// Fixed window or sliding counter: hits are counted per window. (The sliding log has no windows.)
constexpr bool IsWindow(Algorithm algorithm) {
  const StateForm state = TraitsOf(algorithm).state;
  return state == StateForm::kWindow || state == StateForm::kWindows;
}
// Whether each hit is kept.
constexpr bool KeepsHits(Algorithm algorithm) {
  return TraitsOf(algorithm).state == StateForm::kHits;
}
// Whether consumed capacity can be given back.
constexpr bool TakesRefunds(Algorithm algorithm) { return !IsQueue(algorithm); }
constexpr bool KeepsLeases(Algorithm algorithm) { return TraitsOf(algorithm).keeps_leases; }

constexpr std::string_view Name(Algorithm algorithm) { return TraitsOf(algorithm).name; }
// Also "gcra".
constexpr std::optional<Algorithm> AlgorithmByName(std::string_view name) {
  if (name == "gcra") return Algorithm::kTokenBucket;
  for (const Traits& traits : kAllTraits) {
    if (traits.name == name) return traits.algorithm;
  }
  return std::nullopt;
}

}  // namespace headgate::algorithm
