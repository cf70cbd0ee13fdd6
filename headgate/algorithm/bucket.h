// The live state of one limit for one key. Small and trivial. All zero means fresh, so
// an absent bucket and a fresh one are the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/block.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The meaning of the fields for each algorithm:
//
//   algorithm          edge                                      count
//   token, leaky       theoretical arrival time (TAT), whole ns  its fraction, in 1/requests ns
//   queue              free_at, whole ns                         its fraction, in 1/requests ns
//   fixed window       end of the open window                    hits in it
//   sliding counter    hits in the current window, and those     unused
//                      of the previous one in the upper half
//   sliding log        belongs to the HitLog                     sum of the costs of all hits
//
// `seen` is the latest time of any decision for this bucket. An earlier `now` is treated as `seen`.
struct BucketState {
  uint64_t edge = 0;
  base::Instant seen{0};
  uint32_t count = 0;
  Block block{};  // only if the limit has `block`

  bool operator==(const BucketState&) const = default;
};

// The instant at which the bucket would be full under all of its earlier limits, each from the
// state that the bucket had when the limit was replaced. 0 if no earlier limit matters any more.
struct RememberedUntil : base::Instant {
  // An earlier limit was of another kind or had a larger capacity, so the state does not show all
  // earlier use. Until this instant, raising the limit adds nothing.
  bool hides_use = false;

  bool operator==(const RememberedUntil&) const = default;
};

// The same as 64 bits, as stores keep it.
inline constexpr uint64_t kHidesUseBit = uint64_t{1} << 63;
constexpr uint64_t ToWord(const RememberedUntil& remembered) {
  return static_cast<uint64_t>(remembered.ns) | (remembered.hides_use ? kHidesUseBit : 0);
}
constexpr RememberedUntil FromWord(uint64_t word) {
  return {base::Instant{static_cast<int64_t>(word & ~kHidesUseBit)}, (word & kHidesUseBit) != 0};
}

struct Hit {
  base::Instant at;
  uint32_t cost;
};

// The hits of one bucket of a sliding_window_log, oldest first. The store decides where they are
// kept.
class HitLog {
 public:
  // Returns false to stop.
  using Visitor = absl::FunctionRef<bool(Hit hit)>;

  virtual ~HitLog() = default;
  virtual bool empty() const = 0;
  virtual size_t size() const = 0;  // may take time in proportion to the size
  virtual Hit Oldest() const = 0;   // not empty
  virtual Hit Newest() const = 0;   // not empty
  virtual void DropOldest() = 0;    // not empty
  // Takes `cost` off the newest hit. Removes the hit if its cost is not larger than that.
  virtual void ReduceNewest(uint32_t cost) = 0;
  // Takes up to `cost` off the hits of this time; returns how much. Removes hits whose cost becomes
  // 0.
  virtual uint32_t ReduceAt(base::Instant at, uint64_t cost) = 0;
  // Returns false, and changes nothing, if there is no room for another hit.
  virtual bool Append(Hit hit) = 0;
  // Visits the hits from the oldest on until `visit` returns false.
  virtual void ForEach(Visitor visit) const = 0;
};

}  // namespace headgate::algorithm
