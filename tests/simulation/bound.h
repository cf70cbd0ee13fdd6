// The promise of a limit about the whole fleet, checked at every admission and in the store's true
// time. This is the definition, computed by code that shares nothing with the code under test.
//
//   token bucket     in every interval admitted ≤ capacity + rate · its length. This holds exactly
//                    while a bucket of that capacity and rate, fed with every admission, never goes
//                    below zero.
//   fixed window     admitted ≤ requests in each window. If windows begin with their first hit, the
//                    store says when; one that begins before the last is over counts as the same.
//   sliding counter  previous · (P − x)/P + current ≤ requests at each admission
//   queue            as a bucket of its burst and the one request that goes at once: what is let
//                    through is promised its turn
//   sliding log      admitted ≤ requests in each (t − P, t]
//   0 requests       nothing
//
// While a limit of one kind replaces one of another (another algorithm, period or alignment),
// instances hear of it at different times, and the bucket goes back and forth between both. Each
// time it starts with the smaller of what was left and the other's capacity, and what is out on
// lease stays counted as spent. So what is left, leases included, grows by nothing but by what one
// of the two limits gives back in the meantime:
//
//   admitted since ≤ what was left under the old limit + what either limit has given back since,
//                    of which never more than the larger capacity is available at once; for a log
//                    and for windows that begin with their first hit, one window of requests more
//   given back       buckets and the sliding counter: rate · time. Windows: their requests, at each
//                    end of one. A log: its requests, once in each period.
//
// In addition, a bucket that is as if never used is full under the present limit. If the new limit
// is larger, that adds its capacity less the old one, once. To be as if never used again, a bucket
// must get back, under each of the two limits, what it held when that limit was replaced; the sum
// of both covers this.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/base/wide.h"

namespace headgate::simulation {

// Bounded by a capacity and a rate.
inline bool IsMeter(const algorithm::Limit& limit) { return IsBucket(limit.algorithm()); }

// A queue or a log: no leases are given of it.
inline bool IsAlwaysExact(const algorithm::Limit& limit) {
  return !algorithm::KeepsLeases(limit.algorithm());
}

// How many requests may pass at once.
uint64_t CapacityOf(const algorithm::Limit& limit);

// Whether a bucket of one goes on under the other with all that it has.
bool IsSameKind(const algorithm::LimitSpec& a, const algorithm::LimitSpec& b);

class Bound {
 public:
  explicit Bound(const algorithm::Limit& limit);

  // A change is under way: the larger of both holds, and a bucket that is as if never used under
  // one is so under the other. Over: `limit` holds. If it is one of another kind, see above.
  void Widen(const algorithm::Limit& limit, base::Duration at, base::Instant wall);
  // No lease of before lives, and the store's bucket is one of `limit`. A window must just have
  // begun, or not have, if the change was one of kind.
  void Narrow(const algorithm::Limit& limit, base::Duration at, base::Instant wall);

  // The stated terms: forgetting adds at most one capacity, a step of the store's clock at most the
  // refill of the step. Earlier leases are spent by `until`.
  void AllowCapacity(base::Duration at, base::Duration until);
  void AllowTokens(uint64_t tokens, base::Duration at, base::Duration until);
  void AllowTime(base::Duration step, base::Duration at, base::Duration until);
  // Two servers answer, the one that was and the one that is, until the first stops. It has what
  // the bucket had; the other's begins with what is allowed besides. So the rate counts twice until
  // then, and there may be twice the capacity until what the first has leased is over. Windows:
  // theirs are other windows, and each may be filled.
  void AllowSecondServer(base::Duration at, base::Duration stops, base::Duration until);

  // Something was let through at `at` without the store, by somebody who could not ask it since
  // `from`. An outage adds a capacity and what accrues meanwhile; one that begins before the last
  // is over is the same. To a window of the calendar and to a period of a log it adds one capacity,
  // in all outages together: each instance knows what it let through in it. Each of `instances` has
  // a share of one request at least, and of a queue one that goes at once.
  void AllowOutage(base::Duration from, base::Duration at, uint32_t instances);
  // For a capacity that instances share: an instance that starts anew has its share once more.
  void AllowShare(uint32_t instances, base::Duration at);

  // `at` is true time, `wall` what the store's clock says then. False: more than was promised.
  bool Admit(uint64_t cost, base::Duration at, base::Instant wall);

  // The admission is undone, or reported to the store as undone.
  void Refund(uint64_t cost, base::Duration at, base::Instant wall);
  // A window that begins with its first hit: until then it lasts, the store says at `wall`.
  void OnWindow(base::Instant until, base::Instant wall);

  // How many more would be let through now, if nothing else was allowed; 0 where it is unknown.
  uint64_t Room(base::Duration at, base::Instant wall);

 private:
  using Level = __int128;

  bool IsMeter() const {
    return algorithm_ != algorithm::Algorithm::kFixedWindow &&
           algorithm_ != algorithm::Algorithm::kSlidingWindowCounter && !IsLog();
  }
  bool IsLog() const { return algorithm_ == algorithm::Algorithm::kSlidingWindowLog; }
  bool IsCalendar() const;
  // The refill of one of two limits while one replaces the other.
  struct Returns {
    Level requests = 0;     // of a window that ends; 0: neither a window nor a log
    bool any_time = false;  // a log, or a window that begins with its first hit
    algorithm::Align align{};
    int64_t period = 1;
    int64_t window = 0;      // that was seen last
    base::Duration next{0};  // any time: no sooner is something given back
  };

  void BeginKindChange(const algorithm::Limit& limit, base::Duration at, base::Instant wall);
  void AddReturns(Returns& returns, const algorithm::LimitSpec& spec, base::Duration next,
                  base::Instant wall);
  void EndKindChange(const algorithm::Limit& limit);
  void ReturnWindows(base::Duration at, base::Instant wall);
  void Rescale(int64_t period);
  static int64_t WindowAt(algorithm::Align align, int64_t period, base::Instant wall);
  Level Used(base::Instant wall) const;
  void See(base::Duration at, base::Instant wall);
  void Advance(base::Duration at);
  Level OfShorterQueue(const algorithm::Limit& limit) const;
  Level OutageAtOnce(uint32_t instances) const;
  void ForgiveExcess();
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
  // While the kind changes it is a bucket, whose rate is that of both together, with these besides.
  std::optional<std::array<Returns, 2>> changing_;
  uint64_t outage_rate_;  // `rate_`, windows included
  // Windows.
  algorithm::LimitSpec spec_;
  algorithm::Align align_;
  base::Instant until_{0};
  int64_t window_ = 0;
  uint64_t current_ = 0;
  uint64_t previous_ = 0;
  base::Instant wall_{0};  // that was seen last
  // For a log, the requests of the last period, oldest first: `current_` in all.
  struct Hit {
    base::Duration at;
    uint64_t cost;
  };
  std::deque<Hit> hits_;
};

}  // namespace headgate::simulation
