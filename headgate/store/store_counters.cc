#include "headgate/store/store_counters.h"

namespace headgate::store {

StoreCounters& StoreCounters::operator+=(const StoreCounters& other) {
  calls_answered += other.calls_answered;
  calls_unavailable += other.calls_unavailable;
  calls_timed_out += other.calls_timed_out;
  calls_aborted += other.calls_aborted;
  calls_denied += other.calls_denied;
  calls_refused += other.calls_refused;
  calls_throttled += other.calls_throttled;
  calls_failed += other.calls_failed;
  call_ns += other.call_ns;
  retries += other.retries;
  retries_refused += other.retries_refused;
  locks_taken += other.locks_taken;
  locks_lost += other.locks_lost;
  locks_timed_out += other.locks_timed_out;
  redirects += other.redirects;
  script_misses += other.script_misses;
  alarms += other.alarms;
  batched_calls += other.batched_calls;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  late_replies += other.late_replies;
  disconnects += other.disconnects;
  breaker_opened += other.breaker_opened;
  breakers_open += other.breakers_open;
  topology_refreshes += other.topology_refreshes;
  topology_changes += other.topology_changes;
  for (size_t i = 0; i < history_changes.size(); ++i)
    history_changes[i] += other.history_changes[i];
  shards_learning += other.shards_learning;
  pauses_missed += other.pauses_missed;
  calls_damaged += other.calls_damaged;
  buckets_replaced_corrupt += other.buckets_replaced_corrupt;
  buckets_clock_reset += other.buckets_clock_reset;
  buckets_carried_over += other.buckets_carried_over;
  buckets_removed += other.buckets_removed;
  script_errors += other.script_errors;
  return *this;
}

StoreCounters LoopStoreCounters::Read() const {
  StoreCounters read;
  read.calls_answered = calls_answered.value();
  read.calls_unavailable = calls_unavailable.value();
  read.calls_timed_out = calls_timed_out.value();
  read.calls_aborted = calls_aborted.value();
  read.calls_denied = calls_denied.value();
  read.calls_refused = calls_refused.value();
  read.calls_throttled = calls_throttled.value();
  read.calls_failed = calls_failed.value();
  read.call_ns = call_ns.Read();
  read.retries = retries.value();
  read.retries_refused = retries_refused.value();
  read.redirects = redirects.value();
  read.script_misses = script_misses.value();
  read.alarms = alarms.value();
  read.batched_calls = batched_calls.Read();
  read.bytes_read = bytes_read.value();
  read.bytes_written = bytes_written.value();
  read.late_replies = late_replies.value();
  read.disconnects = disconnects.value();
  read.breaker_opened = breaker_opened.value();
  read.breakers_open = breakers_open.value();
  read.topology_refreshes = topology_refreshes.value();
  read.topology_changes = topology_changes.value();
  for (size_t i = 0; i < history_changes.size(); ++i)
    read.history_changes[i] = history_changes[i].value();
  read.shards_learning = shards_learning.value();
  read.pauses_missed = pauses_missed.value();
  read.buckets_replaced_corrupt = buckets_replaced_corrupt.value();
  read.buckets_clock_reset = buckets_clock_reset.value();
  read.buckets_carried_over = buckets_carried_over.value();
  read.script_errors = script_errors.value();
  return read;
}

}  // namespace headgate::store
