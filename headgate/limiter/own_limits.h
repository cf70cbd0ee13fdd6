// Decides requests that bring their own limits and match no rule (CL.THROTTLE, counters).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/counter.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/means.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/pending_counts.h"

namespace headgate::limiter {

// For one thread: that of its checker, which outlives it.
class OwnLimits {
 public:
  explicit OwnLimits(Checker& checker) : checker_(checker), means_(checker.means_) {}

  // Whether calls need a Pending, and may have to wait.
  bool may_wait() const { return means_.decider.may_wait(); }
  // Whether requests are answered as if all of them were allowed: the caller answers by
  // PassedThrough.
  bool passthrough() const { return checker_.passthrough(); }
  const SharedTerms& terms() const { return means_.decider.default_terms(); }

  // The bucket or counter of a client's key, in this process.
  base::Hash128 HashOf(std::string_view key) const {
    return base::HashBytes(means_.store.hash_secret(), base::KeyKind::kRaw, key);
  }
  // ResourceExhausted if the store cannot hold one more limit.
  absl::StatusOr<store::LimitHandle> Intern(const algorithm::Limit& limit) const {
    return means_.store.limits().Intern(limit);
  }

  // Decides all requests of the batch, as Decider::Decide does. `key` gives the client's key of a
  // request.
  bool Decide(std::span<BatchEntry> batch, absl::FunctionRef<std::string_view(size_t)> key,
              Pending* pending, base::Instant now) const {
    const auto name = [&](size_t index, std::string& out) {
      AppendThrottleBucket(means_.naming, key(index), out);
    };
    return means_.decider.Decide(batch, name, pending, now);
  }
  // Changes the counter of a key, as Decider::Increment does. `name` is memory to reuse.
  void Increment(std::string_view key, const algorithm::CounterChange& change, std::string& name,
                 PendingCounts& counts, base::Instant now) const {
    name.clear();
    if (may_wait()) AppendCounter(means_.naming, key, name);
    means_.decider.Increment({.key = HashOf(key), .name = name, .change = change}, counts, now);
  }

  // ---- Without a shared store: the buckets and counters of this process.
  std::optional<algorithm::Counter> FindCounter(std::string_view key, base::Instant now) const {
    return means_.store.FindCounter(HashOf(key), now);
  }
  // The limit of the key's bucket; null if there is none.
  store::LimitHandle LimitOf(std::string_view key) const {
    return means_.store.LimitOf(HashOf(key));
  }
  // Takes nothing: a peek or a reset.
  algorithm::Decision Apply(store::Operation operation, std::string_view key,
                            const store::LimitEntry& limit, base::Instant now) const {
    algorithm::Decision decision;
    means_.store.TakeOne({.key = HashOf(key), .limit = &limit, .cost = 0, .operation = operation},
                         decision, now);
    return decision;
  }

  // Reports `count` decisions with one outcome to the observers.
  void Observe(Outcome outcome, uint64_t count) const {
    for (Observer* const one : means_.observers.all())
      one->OnOwnLimits(means_.worker, outcome, count);
  }
  // Whether an observer wants to know the keys, and then reports one.
  bool keys_are_heard() const {
    for (const Observer* const one : means_.observers.all())
      if (one->hears_own_keys()) return true;
    return false;
  }
  void ObserveKey(const OwnKeyEvent& event) const {
    for (Observer* const one : means_.observers.all())
      if (one->hears_own_keys()) one->OnOwnKey(means_.worker, event);
  }

 private:
  const Checker& checker_;
  const Means& means_;
};

}  // namespace headgate::limiter
