// Counters in the memory store. A counter is kept like a bucket, so it counts towards max_buckets,
// is evicted, swept and saved like one, and needs no table of its own.
//
// All counters have one limit, which denies everything, in a class of their own. Under it the state
// of a counter is that of a token bucket that is full when the counter expires
// (algorithm::StateOf). Eviction, the sweep and the snapshot use nothing else: the counter that
// expires first loses least.
#include <mutex>

#include "headgate/algorithm/limit.h"
#include "headgate/store/memory.h"

namespace headgate::store {

using algorithm::Counter;
using algorithm::CounterAnswer;
using algorithm::CounterChange;
using base::Instant;

absl::StatusOr<const LimitEntry*> MemoryStore::EnsureCounters() {
  if (const LimitEntry* known = counters_.load(std::memory_order_acquire)) return known;
  std::lock_guard lock(counters_mutex_);
  if (!counters_pin_) {
    HEADGATE_ASSIGN_OR_RETURN(
        const algorithm::Limit none,
        algorithm::Limit::Make({.requests = 0, .period = std::chrono::seconds(1)}));
    HEADGATE_ASSIGN_OR_RETURN(counters_pin_, limits_.Intern(none, 0, LimitOwner::Counters()));
    counters_.store(counters_pin_.get(), std::memory_order_release);
  }
  return counters_pin_.get();
}

absl::StatusOr<CounterAnswer> MemoryStore::Increment(const base::Hash128& key,
                                                     const CounterChange& change, Instant now) {
  HEADGATE_ASSIGN_OR_RETURN(const LimitEntry* const counters, EnsureCounters());
  now = base::Clamp(now);
  const Fingerprint print = Fingerprint::Of(key);
  CounterAnswer answer;
  InBothSegments(print, [&] { answer = IncrementLocked(print, *counters, change, now); });
  return answer;
}

CounterAnswer MemoryStore::IncrementLocked(const Fingerprint& print, const LimitEntry& counters,
                                           const CounterChange& change, Instant now) {
  SlotRef ref = Find(print, Held::kBoth);
  std::optional<Counter> counter;
  if (ref.found() && HoldsCounter(ref, now)) {
    counter = CounterOf(ref->Load());
  } else if (ref.found()) {
    if (FreshAtOf(ref) > now) return {.outcome = CounterAnswer::Outcome::kWrongType};
    Remove(ref);
    ref = {};
  }
  const CounterAnswer answer = algorithm::Increment(change, counter, now);
  if (counter && ref.found()) {
    ref->Store(StateOf(*counter));
  } else if (counter) {
    Insert(print, Held::kBoth, counters, StateOf(*counter), now);
  } else if (ref.found()) {
    Remove(ref);
  }
  return answer;
}

std::optional<Counter> MemoryStore::FindCounter(const base::Hash128& key, Instant now) {
  now = base::Clamp(now);
  const Fingerprint print = Fingerprint::Of(key);
  std::optional<Counter> counter;
  InBothSegments(print, [&] {
    SlotRef ref = Find(print, Held::kBoth);
    if (ref.found() && HoldsCounter(ref, now)) counter = CounterOf(ref->Load());
  });
  return counter;
}

bool MemoryStore::HoldsCounter(SlotRef& ref, Instant now) {
  if (!limits_.EntryOf(ref->limit_id()).is_of_counters()) return false;
  if (CounterOf(ref->Load()).expires_at > now) return true;
  Remove(ref);
  ref = {};
  return false;
}

}  // namespace headgate::store
