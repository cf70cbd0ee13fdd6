// What happened to calls. Each event loop counts for itself; readers on other threads sum
// (base/counter.h).
#pragma once

#include <array>
#include <cstdint>

#include "headgate/base/counter.h"
#include "headgate/store/redis/shard_histories.h"

namespace headgate::store::redis {

// Of how long calls took, in nanoseconds: 50 µs, a server on this machine, to 1 s, a hundred times
// the usual timeout.
inline constexpr std::array<uint64_t, 13> kCallTimeBounds = {
    50'000,     100'000,    250'000,    500'000,     1'000'000,   2'500'000,    5'000'000,
    10'000'000, 25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000};
// Of how many calls travel in one write: at most in_flight_max of RedisOptions.
inline constexpr std::array<uint64_t, 11> kBatchCallsBounds = {1,  2,   4,   8,   16,  32,
                                                               64, 128, 256, 512, 1024};

struct ClientCounters {
  // Calls by what became of them.
  uint64_t calls_answered = 0;     // by the store, be it with an error of the script's own
  uint64_t calls_unavailable = 0;  // not done
  uint64_t calls_timed_out = 0;    // perhaps done
  uint64_t calls_aborted = 0;      // perhaps done: the connection ended
  uint64_t calls_denied = 0;       // the store does not let us
  uint64_t calls_refused = 0;      // too many under way
  uint64_t calls_failed = 0;       // anything else: our own errors
  base::Histogram<kCallTimeBounds> call_ns;  // of those that were answered

  uint64_t retries = 0;                              // sent a second time
  uint64_t retries_refused = 0;                      // the budget for that was spent
  uint64_t redirects = 0;                            // MOVED and ASK
  uint64_t script_misses = 0;                        // NOSCRIPT
  uint64_t alarms = 0;                               // errors that somebody should look at
  base::Histogram<kBatchCallsBounds> batched_calls;  // of each write that carried calls, how many
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t late_replies = 0;
  uint64_t disconnects = 0;         // connections that ended or could not be had
  uint64_t breaker_opened = 0;      // times
  uint64_t breakers_open = 0;       // now
  uint64_t topology_refreshes = 0;  // asked for
  uint64_t topology_changes = 0;    // found
  std::array<uint64_t, kHistoryChangeCount> history_changes{};  // that teach, by what they were
  uint64_t shards_learning = 0;                                 // now
  uint64_t pauses_missed = 0;                                   // by our clock, as a server's tells

  ClientCounters& operator+=(const ClientCounters& other);
};

struct alignas(64) LoopClientCounters {
  base::Counter calls_answered, calls_unavailable, calls_timed_out, calls_aborted, calls_denied,
      calls_refused, calls_failed;
  base::HistogramCounter<kCallTimeBounds> call_ns;
  base::Counter retries, retries_refused, redirects, script_misses, alarms;
  base::HistogramCounter<kBatchCallsBounds> batched_calls;
  base::Counter bytes_read, bytes_written, late_replies, disconnects;
  base::Counter breaker_opened, breakers_open, topology_refreshes, topology_changes,
      shards_learning, pauses_missed;
  std::array<base::Counter, kHistoryChangeCount> history_changes;

  ClientCounters Read() const;
};

}  // namespace headgate::store::redis
