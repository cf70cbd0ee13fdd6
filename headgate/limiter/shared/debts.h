// Records the requests that this node admitted while the shared store was unreachable, so that they
// are charged to the shared buckets once the store answers again.
//
// A debt is a bucket of its own, at the rate of this node's share of the limit. It begins full,
// each admitted request takes from it, and time refills it. The missing part is owed: also what was
// charged beyond the share, so the bucket has room for anything. So requests admitted 15 s ago at
// 20 a second are paid by time, and requests admitted in a window are forgotten with the window.
//
// Each debt is settled once, oldest first, by the caller of Take. The table is bounded: a debt that
// time has paid gives up its place, and requests that find no place are counted and forgotten. Not
// thread-safe, except for the counters.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/counter.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/lease/kept_history.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter::shared {

class Debts {
 public:
  struct Debt {
    base::Hash128 key{};
    std::string name;          // of the bucket in the store
    store::LimitHandle limit;  // of the shared bucket
    algorithm::Limit terms;    // the limit by which time pays the debt
    algorithm::BucketState state;
    lease::KeptHistory history;  // of `limit`, as known at the last admission
  };
  // In requests. Readable from any thread.
  struct Counters {
    base::Counter owed;       // admitted without the store
    base::Counter settled;    // charged to the shared bucket; includes calls without an answer
    base::Counter forgotten;  // found no place
    base::Counter keys;       // debts now
  };

  explicit Debts(size_t keys_max = 16'384) : keys_max_(keys_max) {}
  Debts(const Debts&) = delete;

  // A request of this cost was admitted by the node's `share` of `limit`. Ignores queues: their
  // requests already have a reserved turn.
  void Add(const base::Hash128& key, std::string_view name, const store::LimitHandle& limit,
           std::span<const store::LimitChange> history, const algorithm::Limit& share,
           algorithm::Cost cost, base::Instant now);
  // An admission at `taken_at` was undone.
  void Undo(const base::Hash128& key, algorithm::Cost cost, base::Instant taken_at,
            base::Instant now);

  bool empty() const { return debts_.empty(); }
  size_t size() const { return debts_.size(); }

  // Removes and returns the oldest debt that time has not paid. Drops paid ones.
  std::optional<Debt> Take(base::Instant now);
  // The debt could not be settled: puts it back, behind the others.
  void PutBack(Debt debt, base::Instant now);
  // Looks at the next `count` debts, and drops those that time has paid.
  void DropPaid(size_t count, base::Instant now);

  // The part of the debt that is still owed.
  static algorithm::Cost AmountOf(const Debt& debt, base::Instant now);

  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }

 private:
  struct HashOfKey {
    size_t operator()(const base::Hash128& key) const { return static_cast<size_t>(key.low); }
  };
  using List = std::list<Debt>;

  void Erase(List::iterator debt);
  bool MakeRoom(base::Instant now);

  const size_t keys_max_;
  List debts_;  // oldest first
  absl::flat_hash_map<base::Hash128, List::iterator, HashOfKey> by_key_;
  Counters counters_;
};

}  // namespace headgate::limiter::shared
