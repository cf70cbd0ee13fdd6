// The bounds of a compare-and-set store, and what it counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"
#include "headgate/store/cas/bucket_round.h"

namespace headgate::store::cas {

struct CasOptions {
  // The time within which a request is answered if it does not bring a timeout of its own.
  base::Duration timeout = std::chrono::milliseconds(100);
  // The pause before the next attempt is drawn from [0, pause_min · 2^n], at most pause_max.
  base::Duration pause_min = std::chrono::microseconds(500);
  base::Duration pause_max = std::chrono::milliseconds(20);
  // Requests in progress for one key, and for all keys of one event loop; further ones fail at
  // once. Raise them with the rate and the latency of the store.
  size_t requests_per_key_max = 4'096;
  size_t requests_max = 65'536;
  // Values that each event loop remembers, so that a write needs no read, and their bytes. Raise
  // them if more keys are used within a few seconds.
  size_t remembered_max = 10'000;
  size_t remembered_bytes_max = size_t{16} << 20;
  // How long a request may wait for the lock of its key and be decided. Raise it with the number of
  // instances that use the same key.
  base::Duration lock_timeout = std::chrono::seconds(5);
  // How long rounds may begin under one lock while requests keep coming. Then other instances get
  // the lock. Lower it if they wait for too long.
  base::Duration lock_hold_max = std::chrono::milliseconds(100);
  // Told whenever requests have failed because the value of their key is damaged. On the loop's
  // thread.
  std::function<void()> on_damaged{};
  RoundOptions round{};
};

// One event loop writes them, any thread reads them.
struct alignas(64) CasCounters {
  base::Counter requests;
  base::Counter rounds;    // answered together
  base::Counter combined;  // requests that shared a round with another one: the number of requests
                           // minus that of rounds
  base::Counter reads, writes;
  base::Counter conflicts;            // writes that lost against another instance
  base::Counter throttled;            // calls that the service refused because it is overloaded
  base::Counter ambiguous;            // writes that may have been applied
  base::Counter ambiguous_applied;    // of these, found to have been applied
  base::Counter ambiguous_repeated;   // of these, written again
  base::Counter ambiguous_forgotten;  // of these, with an unknown result: their requests failed
  base::Counter exhausted;            // requests whose time ended after attempts that lost a race
  base::Counter timed_out;            // requests that failed because their time was over
  base::Counter unavailable;          // requests that failed because the service does not answer
  base::Counter refused;              // requests beyond requests_per_key_max or requests_max
  base::Counter locks_taken;
  base::Counter locks_lost;       // while they were held
  base::Counter locks_timed_out;  // requests that failed while they waited for a lock
  base::Counter damaged;          // requests that failed because the value is damaged
  base::Counter replaced_corrupt, clock_reset, carried_over;
};

}  // namespace headgate::store::cas
