// What a limit promises of the whole fleet, checked at every admission and in the store's true time. This is the
// definition, computed by code that shares nothing with what it checks.
//
//   token bucket     in every interval admitted ≤ capacity + rate · its length: exactly when a bucket of that capacity
//                    and rate, fed with every admission, never goes below zero
//   fixed window     admitted ≤ requests in each window;
//                    one that begins with its first hit is taken from the store, but one that begins before the last
//                    is over counts as the same
//   sliding counter  previous · (P − x)/P + current ≤ requests at each admission
#pragma once

#include <cstdint>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/base/wide.h"

namespace headgate::simulation {

inline bool IsMeter(const algorithm::Limit& limit) {
  return limit.algorithm() == algorithm::Algorithm::kTokenBucket ||
         limit.algorithm() == algorithm::Algorithm::kLeakyBucket;
}

class Bound {
 public:
  // `calendar_edge`: where one month or year ends and the next begins.
  Bound(const algorithm::Limit& limit, base::Instant calendar_edge);

  // A change is under way: the larger of both holds, and a bucket that is as if never used under one is so under the
  // other. Over: `limit` holds.
  void Widen(const algorithm::Limit& limit, base::Duration at);
  void Narrow(const algorithm::Limit& limit, base::Duration at);

  // What was stated: forgetting adds at most one capacity, a step of the store's clock at most what accrues in it. What
  // was leased before is spent by `until`.
  void AllowCapacity(base::Duration at, base::Duration until);
  void AllowTokens(uint64_t tokens, base::Duration at, base::Duration until);
  void AllowTime(base::Duration step, base::Duration at, base::Duration until);
  // Two servers answer, the one that was and the one that is, until the first stops. It has what the bucket had; the
  // other's begins with what is allowed besides. So the rate counts twice until then, and there may be twice the
  // capacity until what the first has leased is over. Windows: theirs are other windows, and each may be filled.
  void AllowSecondServer(base::Duration at, base::Duration stops, base::Duration until);

  // Something was let through at `at` without the store, by somebody who could not ask it since `from`. An outage adds
  // a capacity and what accrues meanwhile; one that begins before the last is over is the same.
  // Each of `instances` has a share of one request at least.
  void AllowOutage(base::Duration from, base::Duration at, uint32_t instances);
  // Of a capacity that is divided by instances: one that starts anew has its part once more.
  void AllowShare(uint32_t instances, base::Duration at);

  // `at` is true time, `wall` what the store's clock says then. False: more than was promised.
  bool Admit(uint64_t cost, base::Duration at, base::Instant wall);

  // What was admitted is undone, or the store is told so.
  void Refund(uint64_t cost, base::Duration at, base::Instant wall);
  // A window that begins with its first hit: until then it lasts, the store says at `wall`.
  void OnWindow(base::Instant until, base::Instant wall);

  // How many more would be let through now, if nothing else was allowed; 0 where it is unknown.
  uint64_t Room(base::Duration at, base::Instant wall);

 private:
  using Level = __int128;

  bool IsMeter() const {
    return algorithm_ != algorithm::Algorithm::kFixedWindow &&
           algorithm_ != algorithm::Algorithm::kSlidingWindowCounter;
  }
  void Advance(base::Duration at);
  void Allow(Level tokens, base::Duration at, base::Duration until);
  void AdvanceWindow(base::Instant wall);
  void EndOutage();

  algorithm::Algorithm algorithm_;
  int64_t period_;
  // In requests · period.
  Level level_;
  Level capacity_;
  Level full_from_;  // while a change is under way: the smaller capacity
  Level extra_ = 0;  // above the capacity, until `extra_until_`
  base::Duration extra_until_{0};
  base::Duration second_until_{0};  // the rate counts twice
  Level second_capacities_ = 0;     // of the extra
  Level outage_ = 0;                // of the extra
  base::Duration outage_until_{0};  // so far
  uint64_t rate_;                   // requests per period
  base::Duration seen_{0};
  // Windows.
  algorithm::Align align_;
  base::Instant calendar_edge_;
  base::Instant until_{0};
  int64_t window_ = 0;
  uint64_t current_ = 0;
  uint64_t previous_ = 0;
};

}  // namespace headgate::simulation
