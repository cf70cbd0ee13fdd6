// The basis of the property tests: the kinds of limits, random limits of each kind, buckets in
// random states, and the bound that each algorithm declares. The promises themselves are in
// properties_test.cc.
//
// All random numbers come from a seeded generator, so a seed that failed fails again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <random>
#include <string_view>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {

using Random = std::mt19937_64;

// Uniform in [low, high].
inline uint64_t Between(Random& random, uint64_t low, uint64_t high) {
  return low + random() % (high - low + 1);
}

// Algorithm, align and count_denied of `spec` define the kind; AnyLimit chooses its numbers.
struct Kind {
  const char* name;
  LimitSpec spec;

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

inline constexpr std::array kKinds{
    Kind{"token_bucket", {.algorithm = Algorithm::kTokenBucket}},
    Kind{"leaky_bucket", {.algorithm = Algorithm::kLeakyBucket}},
    Kind{"leaky_bucket_queue", {.algorithm = Algorithm::kLeakyBucketQueue}},
    Kind{"fixed_window", {.algorithm = Algorithm::kFixedWindow}},
    Kind{"fixed_window_first_hit",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kFirstHit}},
    Kind{"fixed_window_week",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarWeek}},
    Kind{"fixed_window_month",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarMonth}},
    Kind{"fixed_window_year",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarYear}},
    Kind{"fixed_window_day", {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarDay}},
    Kind{"fixed_window_count_denied", {.algorithm = Algorithm::kFixedWindow, .count_denied = true}},
    Kind{"sliding_window_counter", {.algorithm = Algorithm::kSlidingWindowCounter}},
    Kind{"sliding_window_counter_count_denied",
         {.algorithm = Algorithm::kSlidingWindowCounter, .count_denied = true}},
    Kind{"sliding_window_log", {.algorithm = Algorithm::kSlidingWindowLog}},
};

// The kinds that keep leases (KeepsLeases) and grant them (CanLease).
inline constexpr std::array kLeasedKinds{
    Kind{"token_bucket", {.algorithm = Algorithm::kTokenBucket}},
    Kind{"leaky_bucket", {.algorithm = Algorithm::kLeakyBucket}},
    Kind{"fixed_window", {.algorithm = Algorithm::kFixedWindow}},
    Kind{"fixed_window_first_hit",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kFirstHit}},
    Kind{"fixed_window_week",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarWeek}},
    Kind{"fixed_window_month",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarMonth}},
    Kind{"fixed_window_year",
         {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendarYear}},
    Kind{"sliding_window_counter", {.algorithm = Algorithm::kSlidingWindowCounter}},
};

inline bool IsQueue(const Limit& limit) {
  return limit.algorithm() == Algorithm::kLeakyBucketQueue;
}

// The largest cost that the limit can ever admit.
inline Cost LargestCost(const Limit& limit) { return limit.capacity() + (IsQueue(limit) ? 1 : 0); }

// A typical time scale of the limit: an interval, or an eighth of a window.
inline uint64_t PaceOf(const Limit& limit) {
  if (IsCalendar(limit.spec().align))
    return static_cast<uint64_t>(ShortestCalendarPeriod(limit.spec()).count()) / 8;
  return std::max<uint64_t>(1, IsBucket(limit.algorithm()) ? limit.interval() : limit.period() / 8);
}

inline LimitSpec AnySpec(const Kind& kind, Random& random) {
  LimitSpec spec = kind.spec;
  spec.requests = Between(random, 1, 30);
  constexpr std::array<uint64_t, 4> kPeriodMax{40, 1000, 1'000'000'000, 3'600'000'000'000};
  spec.period = base::Duration(
      static_cast<int64_t>(Between(random, 1, kPeriodMax[random() % kPeriodMax.size()])));
  if (IsBucket(spec.algorithm)) spec.burst = Between(random, 1, 40);
  return spec;
}

inline Limit AnyLimit(const Kind& kind, Random& random) {
  return *Limit::Make(AnySpec(kind, random));
}

// A bucket with its limit and its time. Copy it to try something without changing the original.
struct Bucket {
  explicit Bucket(const Limit& limit_of_it) : limit(limit_of_it) {}

  Decision Ask(Cost cost) { return Decide(limit, state, hits, cost, now); }
  Decision Peek() { return Ask(0); }
  Decision Charge(Cost cost) { return algorithm::Charge(limit, state, hits, cost, now); }
  Decision Undo(Cost cost, base::Instant taken_at) {
    return *algorithm::Undo(limit, state, hits, cost, taken_at, now);
  }
  void Wait(base::Duration d) { now = base::Clamp(now + d); }
  // The time from which the bucket is fresh.
  base::Instant FreshAt() const {
    return std::max<base::Instant>(algorithm::FreshAt(limit, state, hits), remembered_until);
  }
  void Become(const Limit& to) {
    Change(limit, to, state, hits, remembered_until, now);
    limit = to;
  }

  Limit limit;
  BucketState state{};
  testing::DequeHitLog hits{};
  algorithm::RememberedUntil remembered_until{};
  base::Instant now{1'790'000'000'000'000'000};
};

inline base::Duration AnyWait(const Limit& limit, Random& random) {
  const uint64_t pace = PaceOf(limit);
  switch (random() % 4) {
    case 0:
      return base::Duration(0);
    case 1:
      return base::Duration(1);
    case 2:
      return base::Duration(static_cast<int64_t>(Between(random, 0, pace)));
    default:
      return base::Duration(static_cast<int64_t>(Between(random, 0, 6 * pace)));
  }
}

// A bucket of a random limit after some random traffic.
inline Bucket AnyBucket(const Kind& kind, Random& random) {
  Bucket bucket(AnyLimit(kind, random));
  bucket.Wait(AnyWait(bucket.limit, random));
  for (uint64_t left = random() % 20; left > 0; --left) {
    bucket.Ask(Between(random, 0, random() % 3 == 0 ? LargestCost(bucket.limit) : 2));
    // Some buckets are overdrawn.
    if (random() % 16 == 0) bucket.Charge(random() % (2 * LargestCost(bucket.limit)));
    bucket.Wait(AnyWait(bucket.limit, random));
  }
  return bucket;
}

// The most that may be admitted in any closed interval of this length, whatever the traffic.
inline uint64_t Bound(const Limit& limit, base::Duration length) {
  const auto ns = static_cast<uint64_t>(length.count());
  if (IsBucket(limit.algorithm())) {
    const base::uint128 refill = base::WideMul(ns, limit.requests()) / limit.period();
    return LargestCost(limit) + static_cast<uint64_t>(refill);
  }
  const uint64_t period = IsCalendar(limit.spec().align)
                              ? static_cast<uint64_t>(ShortestCalendarPeriod(limit.spec()).count())
                              : limit.period();
  // An interval shorter than a window overlaps up to two windows, but contains at most `requests`
  // of the log's hits.
  const uint64_t edges = limit.algorithm() == Algorithm::kSlidingWindowLog ? 1 : 2;
  return limit.capacity() * (ns / period + edges);
}

}  // namespace headgate::algorithm
