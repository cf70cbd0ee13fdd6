// The buckets that a reservation took from, and how much. A request may pass without taking: a rule
// in quota mode or in shadow denied it, the shared store was unreachable, or no rule applied. Then
// nothing may come back later, or the bucket would let through more than its limit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/rule/rule_set.h"

namespace headgate::front::api {

// The take for one descriptor of a reservation.
struct ReservedTake {
  uint64_t cost = 0;    // from each of its limits
  base::Instant at{0};  // as Response::taken_at
  // Names the buckets. Another mark means other buckets, or limits that refill in another way; 0:
  // no limit applied.
  uint64_t mark = 0;
  bool operator==(const ReservedTake&) const = default;
};

// The buckets of a descriptor under the rules of the moment.
struct FoundBuckets {
  const rule::Rule* rule = nullptr;  // null: none applies, or the request brings its limit
  std::span<const limiter::PublishedLimit> limits{};  // of the rule, for this key
  uint64_t mark = 0;                                  // as in ReservedTake
};

// One for each descriptor. `rules` may be null, and must outlive the result.
std::vector<FoundBuckets> FindBuckets(const limiter::PublishedRules* rules,
                                      const limiter::Request& request);

// A text that names the buckets, for ids of requests that take from them.
std::string NameOf(const std::vector<ReservedTake>& takes);

// The takes of a request that has passed and tells its takes, one for each descriptor. `found` are
// their buckets.
std::vector<ReservedTake> TakesOf(const limiter::Request& request,
                                  const std::vector<FoundBuckets>& found,
                                  const limiter::Response& response);

// The part of the take that the buckets certainly still lack. `answer` is about the descriptor now,
// and `found` are its buckets now.
uint64_t StillTaken(const ReservedTake& take, const FoundBuckets& found,
                    const limiter::DescriptorAnswer& answer, base::Instant taken_at,
                    base::Instant now);

}  // namespace headgate::front::api
