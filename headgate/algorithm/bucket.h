// The live state of one limit for one key. Small, trivial, and all zero means "as if never used",
// so that an absent bucket and a fresh one are the same thing.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::algorithm {

// What the fields mean for each algorithm:
//
//   algorithm          edge                                      count
//   token, leaky       theoretical arrival time (TAT), whole ns  its fraction, in 1/requests ns
//   queue              free_at, whole ns                         its fraction, in 1/requests ns
//   fixed window       end of the open window                    hits in it
//   sliding counter    hits in the current window, and those     unused
//                      of the previous one in the upper half
//   sliding log        belongs to the HitLog                     hits remembered: the sum of their
//   costs
//
// `seen` is the latest time of any decision here; an earlier one counts as this.
struct BucketState {
  uint64_t edge = 0;
  base::Instant seen{0};
  uint32_t count = 0;

  bool operator==(const BucketState&) const = default;
};

struct Hit {
  base::Instant at;
  uint32_t cost;
};

// Where a sliding_window_log keeps its hits, oldest first; the store decides where that is. Holds
// hits of one bucket.
class HitLog {
 public:
  virtual ~HitLog() = default;
  virtual bool empty() const = 0;
  virtual Hit Oldest() const = 0;  // not empty
  virtual Hit Newest() const = 0;  // not empty
  virtual void DropOldest() = 0;   // not empty
  // Takes `cost` off the newest hit, which is larger than that or goes.
  virtual void ReduceNewest(uint32_t cost) = 0;
  // False, and nothing changes, where there is no room for another hit.
  virtual bool Append(Hit hit) = 0;
  // Walks from the oldest hit on until `visit` returns false.
  virtual void ForEach(bool (*visit)(void* context, Hit hit), void* context) const = 0;
};

}  // namespace headgate::algorithm
