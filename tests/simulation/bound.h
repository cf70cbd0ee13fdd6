// The promise of a limit about the whole fleet, checked at every admission and in the store's true
// time. This is the definition, computed by code that shares nothing with the code under test.
//
//   token bucket     in every interval admitted ≤ capacity + rate · its length. This holds exactly
//                    while a bucket of that capacity and rate, fed with every admission, never goes
//                    below zero.
//   fixed window     admitted ≤ requests in each window. If windows begin with their first hit, the
//                    store says when; one that begins before the last is over counts as the same.
//   sliding counter  previous · (P − x)/P + current ≤ requests at each admission
//   queue            as a bucket of its burst and the one request that passes at once; an admitted
//                    request has its turn reserved
//   sliding log      admitted ≤ requests in each (t − P, t]
//   0 requests       nothing
//
// While a limit of one kind replaces one of another (another algorithm, period or alignment),
// instances switch at different times, and the bucket goes back and forth between both limits. At
// each switch the bucket starts with the smaller of its rest and the new capacity, and leased
// requests stay counted as spent. So the rest, leases included, grows only by the requests that one
// of the two limits gives back in the meantime:
//
//   admitted since ≤ the rest under the old limit + the requests that either limit has given back
//                    since, of which at most the larger capacity is available at once; for a log
//                    and for windows that begin with their first hit, one more window of requests
//   given back       buckets and the sliding counter: rate · time. Windows: their requests, at each
//                    end of one. A log: its requests, once in each period.
//
// In addition, an unused bucket is full under the present limit. If the new limit is larger, this
// adds the difference of the capacities, once. To be fresh again, a bucket must get back, under
// each of the two limits, the requests that it held when that limit was replaced; the sum of both
// covers this.
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

// Whether a capacity and a rate bound the limit.
inline bool IsMeter(const algorithm::Limit& limit) { return IsBucket(limit.algorithm()); }

// A queue or a log: the store grants no leases from it.
inline bool IsAlwaysExact(const algorithm::Limit& limit) {
  return !algorithm::KeepsLeases(limit.algorithm());
}

// The number of requests that may pass at once.
uint64_t CapacityOf(const algorithm::Limit& limit);

// Whether a bucket of one limit keeps its whole content under the other.
bool IsSameKind(const algorithm::LimitSpec& a, const algorithm::LimitSpec& b);

class Bound {
 public:
  explicit Bound(const algorithm::Limit& limit);

  // A change begins: the larger of both limits holds until Narrow, and a bucket that is fresh under
  // one limit is also fresh under the other. For limits of different kinds, see above.
  void Widen(const algorithm::Limit& limit, base::Duration at, base::Instant wall);
  // The change is over: `limit` holds alone, no older lease lives, and the store's bucket is one of
  // `limit`. After a change of kind, call this when a window has just begun, or none is open.
  void Narrow(const algorithm::Limit& limit, base::Duration at, base::Instant wall);

  // The stated terms: lost state adds at most one capacity, a step of the store's clock at most the
  // refill of the step. Earlier leases are spent by `until`.
  void AllowCapacity(base::Duration at, base::Duration until);
  void AllowTokens(uint64_t tokens, base::Duration at, base::Duration until);
  void AllowTime(base::Duration step, base::Duration at, base::Duration until);
  // An old and a new server answer until the old one stops. One has the bucket's content; the
  // bucket of the other starts with the additional allowance. So the rate counts twice until
  // `stops`, and the capacity until the leases of the old server have ended (`until`). Each server
  // counts its own windows, so both may be filled.
  void AllowSecondServer(base::Duration at, base::Duration stops, base::Duration until);

  // An instance that has not reached the store since `from` admits a request by itself at `at`. An
  // outage adds one capacity and the refill while it lasts; one that begins before the last is over
  // continues it. For a calendar window and a period of a log, all outages together add one
  // capacity, because each instance knows its own admissions in it. Each of `instances` has a share
  // of at least one request, and one more that a queue admits at once.
  void AllowOutage(base::Duration from, base::Duration at, uint32_t instances);
  // If the instances share a capacity: an instance that restarts gets its share again.
  void AllowShare(uint32_t instances, base::Duration at);

  // `at` is true time, `wall` the time of the store's clock. False: the promise is broken.
  bool Admit(uint64_t cost, base::Duration at, base::Instant wall);

  // A client gives back, without saying when it took.
  void Refund(uint64_t cost, base::Duration at, base::Instant wall);
  // When a request was admitted, in both clocks.
  struct Taken {
    base::Duration at;
    base::Instant wall;
  };
  // An admission is undone: what is still missing comes back. This changes nothing in a window that
  // has begun since.
  void Undo(uint64_t cost, Taken taken, base::Duration at, base::Instant wall);
  // For windows that begin with their first hit: at `wall`, the store says that the window lasts
  // until `until`.
  void OnWindow(base::Instant until, base::Instant wall);

  // Whether a capacity and a rate are the bound now, as they also are while the kind changes.
  bool IsMeter() const {
    return algorithm_ != algorithm::Algorithm::kFixedWindow &&
           algorithm_ != algorithm::Algorithm::kSlidingWindowCounter && !IsLog();
  }

  // The number of requests that would still be admitted without any allowance; 0 if unknown.
  uint64_t Room(base::Duration at, base::Instant wall);

 private:
  using Level = __int128;

  bool IsLog() const { return algorithm_ == algorithm::Algorithm::kSlidingWindowLog; }
  bool IsCalendar() const;
  // The requests that one of two limits gives back while one replaces the other.
  struct Returns {
    Level requests = 0;     // of a window, given back when it ends; 0: neither a window nor a log
    bool any_time = false;  // a log, or a window that begins with its first hit
    algorithm::Align align{};
    int64_t period = 1;
    int64_t window = 0;      // the last window seen
    base::Duration next{0};  // `any_time`: the earliest time at which requests come back
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
  // Unit: requests · period.
  Level level_;
  Level capacity_;
  Level full_from_;  // while a change is in progress: the smaller capacity
  Level extra_ = 0;  // above the capacity, until `extra_until_`
  base::Duration extra_until_{0};
  base::Duration second_until_{0};  // until then the rate counts twice
  Level second_capacities_ = 0;     // capacities of second servers in `extra_`
  Level outage_ = 0;                // the part of outages
  base::Duration outage_until_{0};  // the end of the last outage so far
  uint64_t rate_;                   // requests per period
  base::Duration seen_{0};
  // While the kind changes, the bound is a bucket with the sum of both rates, and these come back
  // besides.
  std::optional<std::array<Returns, 2>> changing_;
  uint64_t outage_rate_;  // `rate_`, including windows
  // For windows.
  algorithm::LimitSpec spec_;
  algorithm::Align align_;
  base::Instant until_{0};
  int64_t window_ = 0;
  uint64_t current_ = 0;
  uint64_t previous_ = 0;
  base::Instant wall_{0};  // the last wall time seen
  // For a log, the requests of the last period, oldest first; their costs add up to `current_`.
  struct Hit {
    base::Duration at;
    uint64_t cost;
  };
  std::deque<Hit> hits_;
};

}  // namespace headgate::simulation
