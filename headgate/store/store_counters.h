// What happened to the calls and buckets of a shared store. Each event loop counts for itself;
// readers on other threads sum (base/counter.h).
#pragma once

#include <array>
#include <cstdint>

#include "headgate/base/counter.h"
#include "headgate/store/store_listener.h"

namespace headgate::store {

// Buckets of the time that a call took, in nanoseconds: from 50 µs, a server on this machine, to
// 1 s, a hundred times the usual timeout.
inline constexpr std::array<uint64_t, 13> kCallTimeBounds = {
    50'000,     100'000,    250'000,    500'000,     1'000'000,   2'500'000,    5'000'000,
    10'000'000, 25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000};
// Buckets of the number of calls in one write: at most in_flight_max of CallOptions.
inline constexpr std::array<uint64_t, 11> kBatchCallsBounds = {1,  2,   4,   8,   16,  32,
                                                               64, 128, 256, 512, 1024};

struct StoreCounters {
  // Calls by outcome.
  uint64_t calls_answered = 0;     // by the store, also with an error of a script
  uint64_t calls_unavailable = 0;  // not done
  uint64_t calls_timed_out = 0;    // perhaps done
  uint64_t calls_aborted = 0;      // perhaps done: the connection ended
  uint64_t calls_denied = 0;       // the store does not allow it
  uint64_t calls_refused = 0;      // too many under way
  uint64_t calls_failed = 0;       // anything else: our own errors
  base::Histogram<kCallTimeBounds> call_ns;  // of answered calls

  uint64_t retries = 0;                              // sent a second time
  uint64_t retries_refused = 0;                      // the budget for retries was spent
  uint64_t redirects = 0;                            // to another server
  uint64_t script_misses = 0;                        // the server did not know the script
  uint64_t alarms = 0;                               // errors that need an operator
  base::Histogram<kBatchCallsBounds> batched_calls;  // calls per write
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t late_replies = 0;
  uint64_t disconnects = 0;         // connections that ended or were not established
  uint64_t breaker_opened = 0;      // times
  uint64_t breakers_open = 0;       // now
  uint64_t topology_refreshes = 0;  // asked for
  uint64_t topology_changes = 0;    // found
  std::array<uint64_t, kHistoryChangeCount> history_changes{};  // by kind
  uint64_t shards_learning = 0;                                 // now
  uint64_t pauses_missed = 0;                                   // by our clock, compared with a server's

  uint64_t buckets_replaced_corrupt = 0;
  uint64_t buckets_clock_reset = 0;
  uint64_t buckets_carried_over = 0;  // to another limit
  uint64_t script_errors = 0;         // a script failed: a missing right, or a fault of ours

  StoreCounters& operator+=(const StoreCounters& other);
};

struct alignas(64) LoopStoreCounters {
  base::Counter calls_answered, calls_unavailable, calls_timed_out, calls_aborted, calls_denied,
      calls_refused, calls_failed;
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
