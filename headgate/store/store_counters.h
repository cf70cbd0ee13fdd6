// Counters of the calls and buckets of a shared store. Each event loop has its own; readers on
// other threads add them up (base/counter.h).
#pragma once

#include <array>
#include <cstdint>

#include "headgate/base/counter.h"
#include "headgate/store/store_listener.h"

namespace headgate::store {

// The bounds of the histogram of call times, in nanoseconds: from 50 µs, a server on the same
// machine, to 1 s, a hundred times the default timeout.
inline constexpr std::array<uint64_t, 13> kCallTimeBounds = {
    50'000,     100'000,    250'000,    500'000,     1'000'000,   2'500'000,    5'000'000,
    10'000'000, 25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000};
// The bounds of the histogram of calls per write, up to the default in_flight_max of CallOptions.
inline constexpr std::array<uint64_t, 11> kBatchCallsBounds = {1,  2,   4,   8,   16,  32,
                                                               64, 128, 256, 512, 1024};

struct StoreCounters {
  // Calls by outcome.
  uint64_t calls_answered = 0;               // answered by the store, including errors of a script
  uint64_t calls_unavailable = 0;            // certainly not executed
  uint64_t calls_timed_out = 0;              // possibly executed
  uint64_t calls_aborted = 0;                // possibly executed: the connection broke
  uint64_t calls_denied = 0;                 // the store does not allow it
  uint64_t calls_refused = 0;                // too many calls were in progress
  uint64_t calls_throttled = 0;              // the store is overloaded or a quota is used up
  uint64_t calls_failed = 0;                 // any other error, caused by Headgate itself
  base::Histogram<kCallTimeBounds> call_ns;  // of answered calls

  uint64_t retries = 0;          // calls sent a second time
  uint64_t retries_refused = 0;  // the retry budget was used up
  uint64_t locks_taken = 0;      // of keys, for `strict: lock`
  uint64_t locks_lost = 0;       // while they were held
  uint64_t locks_timed_out = 0;  // requests that failed while they waited for a lock
  uint64_t redirects = 0;        // to another server
  uint64_t script_misses = 0;    // the server did not know the script
  uint64_t alarms = 0;           // errors that need an operator
  base::Histogram<kBatchCallsBounds> batched_calls;  // calls per write
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t late_replies = 0;
  uint64_t disconnects = 0;         // connections that ended or were not established
  uint64_t breaker_opened = 0;      // times that a breaker opened
  uint64_t breakers_open = 0;       // breakers that are open now
  uint64_t topology_refreshes = 0;  // requested refreshes
  uint64_t topology_changes = 0;    // refreshes that found a change
  std::array<uint64_t, kHistoryChangeCount> history_changes{};  // by kind
  uint64_t shards_learning = 0;                                 // shards that are learning now
  uint64_t pauses_missed = 0;  // pauses that the local clock missed, compared with a server's clock

  uint64_t calls_damaged = 0;  // requests that failed because their bucket is damaged
  uint64_t buckets_replaced_corrupt = 0;
  uint64_t buckets_clock_reset = 0;
  uint64_t buckets_carried_over = 0;  // to another limit
  uint64_t buckets_removed = 0;  // removed by this instance, because they were not used for long
  uint64_t script_errors = 0;    // a script failed: a missing permission or a bug in Headgate

  StoreCounters& operator+=(const StoreCounters& other);
};

struct alignas(64) LoopStoreCounters {
  base::Counter calls_answered, calls_unavailable, calls_timed_out, calls_aborted, calls_denied,
      calls_refused, calls_throttled, calls_failed;
  base::HistogramCounter<kCallTimeBounds> call_ns;
  base::Counter retries, retries_refused, redirects, script_misses, alarms;
  base::HistogramCounter<kBatchCallsBounds> batched_calls;
  base::Counter bytes_read, bytes_written, late_replies, disconnects;
  base::Counter breaker_opened, breakers_open, topology_refreshes, topology_changes,
      shards_learning, pauses_missed;
  base::Counter buckets_replaced_corrupt, buckets_clock_reset, buckets_carried_over, script_errors;
  std::array<base::Counter, kHistoryChangeCount> history_changes;

  StoreCounters Read() const;
};

}  // namespace headgate::store
