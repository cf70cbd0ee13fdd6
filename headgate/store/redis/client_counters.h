// What happened to calls. Each event loop counts for itself; readers on other threads sum (see net/counters.h).
#pragma once

#include <array>
#include <cstdint>

#include "headgate/net/counters.h"

namespace headgate::store::redis {

// Upper bounds of the latency buckets, in microseconds; one more bucket holds what took longer.
inline constexpr std::array<int64_t, 11> kLatencyBucketsUs = {50,   100,   250,   500,   1000,  2500,
                                                              5000, 10000, 25000, 50000, 100000};

struct ClientCounters {
  // Calls by what became of them.
  uint64_t calls_answered = 0;     // by the store, be it with an error of the script's own
  uint64_t calls_unavailable = 0;  // not done
  uint64_t calls_timed_out = 0;    // perhaps done
  uint64_t calls_aborted = 0;      // perhaps done: the connection ended
  uint64_t calls_denied = 0;       // the store does not let us
  uint64_t calls_refused = 0;      // too many under way
  uint64_t calls_failed = 0;       // anything else: our own errors
  // Of the calls that were answered, by time; and the sum.
  std::array<uint64_t, kLatencyBucketsUs.size() + 1> latency_buckets{};
  uint64_t latency_ns_sum = 0;

  uint64_t retries = 0;          // sent a second time
  uint64_t retries_refused = 0;  // the budget for that was spent
  uint64_t redirects = 0;        // MOVED and ASK
  uint64_t script_misses = 0;    // NOSCRIPT
  uint64_t alarms = 0;           // errors that somebody should look at
  uint64_t batches = 0;          // writes that carried calls
  uint64_t batched_calls = 0;    // what they carried
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t late_replies = 0;
  uint64_t disconnects = 0;         // connections that ended or could not be had
  uint64_t breaker_opened = 0;      // times
  uint64_t breakers_open = 0;       // now
  uint64_t topology_refreshes = 0;  // asked for
  uint64_t topology_changes = 0;    // found

  ClientCounters& operator+=(const ClientCounters& other);
};

struct alignas(64) LoopClientCounters {
  net::LoopCounter calls_answered, calls_unavailable, calls_timed_out, calls_aborted, calls_denied, calls_refused,
      calls_failed;
  std::array<net::LoopCounter, kLatencyBucketsUs.size() + 1> latency_buckets;
  net::LoopCounter latency_ns_sum;
  net::LoopCounter retries, retries_refused, redirects, script_misses, alarms;
  net::LoopCounter batches, batched_calls, bytes_read, bytes_written, late_replies, disconnects;
  net::LoopCounter breaker_opened, breakers_open, topology_refreshes, topology_changes;

  ClientCounters Read() const;
};

}  // namespace headgate::store::redis
