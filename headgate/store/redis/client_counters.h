// What happened to calls. Each event loop counts for itself; readers on other threads sum (see net/counters.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "headgate/net/counters.h"

namespace headgate::store::redis {

// What was observed, by size: of each bound how many were at most that and above the one before; one more for what was
// larger than all of them.
template <const auto& kBounds>
struct Histogram {
  std::array<uint64_t, kBounds.size() + 1> counts{};
  uint64_t sum = 0;

  Histogram& operator+=(const Histogram& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
    return *this;
  }
};

// The same, written by one thread and read by any.
template <const auto& kBounds>
class LoopHistogram {
 public:
  void Add(uint64_t value) {
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), value) - kBounds.begin();
    counts_[static_cast<size_t>(bucket)].Add();
    sum_.Add(value);
  }
  Histogram<kBounds> Read() const {
    Histogram<kBounds> read;
    for (size_t i = 0; i < counts_.size(); ++i) read.counts[i] = counts_[i].value();
    read.sum = sum_.value();
    return read;
  }

 private:
  std::array<net::LoopCounter, kBounds.size() + 1> counts_;
  net::LoopCounter sum_;
};

// Of how long calls took, in nanoseconds: 50 µs, a server on this machine, to 1 s, a hundred times the usual timeout.
inline constexpr std::array<uint64_t, 13> kCallTimeBounds = {
    50'000,     100'000,    250'000,    500'000,     1'000'000,   2'500'000,    5'000'000,
    10'000'000, 25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000};
// Of how many calls travel in one write: at most in_flight_max of RedisOptions.
inline constexpr std::array<uint64_t, 11> kBatchCallsBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct ClientCounters {
  // Calls by what became of them.
  uint64_t calls_answered = 0;         // by the store, be it with an error of the script's own
  uint64_t calls_unavailable = 0;      // not done
  uint64_t calls_timed_out = 0;        // perhaps done
  uint64_t calls_aborted = 0;          // perhaps done: the connection ended
  uint64_t calls_denied = 0;           // the store does not let us
  uint64_t calls_refused = 0;          // too many under way
  uint64_t calls_failed = 0;           // anything else: our own errors
  Histogram<kCallTimeBounds> call_ns;  // of those that were answered

  uint64_t retries = 0;                        // sent a second time
  uint64_t retries_refused = 0;                // the budget for that was spent
  uint64_t redirects = 0;                      // MOVED and ASK
  uint64_t script_misses = 0;                  // NOSCRIPT
  uint64_t alarms = 0;                         // errors that somebody should look at
  Histogram<kBatchCallsBounds> batched_calls;  // of each write that carried calls, how many
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
  LoopHistogram<kCallTimeBounds> call_ns;
  net::LoopCounter retries, retries_refused, redirects, script_misses, alarms;
  LoopHistogram<kBatchCallsBounds> batched_calls;
  net::LoopCounter bytes_read, bytes_written, late_replies, disconnects;
  net::LoopCounter breaker_opened, breakers_open, topology_refreshes, topology_changes;

  ClientCounters Read() const;
};

}  // namespace headgate::store::redis
