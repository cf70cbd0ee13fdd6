// The store contract: where buckets live. A store decides *where* algorithm::Decide runs, never
// what it computes.
//
// Calls are batches: everything that can be decided now is passed in one call. The requests of a
// batch are decided in order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headgate/algorithm/counter.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/base/strided.h"
#include "headgate/base/time.h"
#include "headgate/store/limit_table.h"

namespace headgate::store {

enum class Operation : uint8_t {
  kTake,
  kPeek,    // decides like kTake without consuming
  kRefund,  // not supported by the queue
  kReset,
  kCharge,  // algorithm::Charge
  kUndo,    // algorithm::Undo; not supported by the queue
};

// Whether the operation gives a cost back. The queue accepts no such operation.
constexpr bool GivesBack(Operation operation) {
  return operation == Operation::kRefund || operation == Operation::kUndo;
}
// Whether the operation asks if a request may pass. The other operations change the bucket and
// answer like a peek.
constexpr bool AsksToPass(Operation operation) {
  return operation == Operation::kTake || operation == Operation::kPeek;
}
// Whether the operation changes nothing. A refund of cost 0 still counts as a use of the bucket,
// and a reset has no cost.
constexpr bool OnlyLooks(Operation operation, algorithm::Cost cost) {
  return operation == Operation::kPeek ||
         (cost == 0 && operation != Operation::kRefund && operation != Operation::kReset);
}

// A previous limit of a rule and when it was replaced. A bucket that was last used under the
// previous limit is carried over as of the time of the replacement, not as of the next request. All
// entries in a history and its request are different; a limit that comes back is interned as
// another version.
struct LimitChange {
  const LimitEntry* before;
  base::Instant at;
  bool operator==(const LimitChange&) const = default;
};

// How a request belongs to the one before it. A group is a request followed by the requests that
// are joined to it.
enum class Joined : uint8_t {
  kNo,         // starts a group of one or more requests
  kSameRule,   // same group and same rule as the request before it
  kOtherRule,  // same group, another rule
};

struct TakeRequest {
  base::Hash128 key;
  const LimitEntry* limit;                 // pinned by the caller until the call returns
  std::span<const LimitChange> history{};  // oldest first; `limit` replaced the last entry
  algorithm::Cost cost = 1;
  Operation operation = Operation::kTake;
  base::Instant taken_at{0};  // only of kUndo: Decision::at of the take
  // Unless all requests of a group are allowed, none of them consumes anything, with one exception:
  // a limit that counts denied requests counts the ones that are denied by it, or by another limit
  // of the same rule.
  Joined joined = Joined::kNo;
};

// Whether request `index` of a denied group is counted nevertheless. `denies(k)` returns whether
// request k of the group is denied. The requests have `operation`, `limit` and `joined` like
// TakeRequest.
template <typename Group, typename Denies>
bool CountsDenied(const Group& group, size_t index, const Denies& denies) {
  const auto& request = group[index];
  if (request.operation != Operation::kTake || !request.limit->limit.spec().count_denied)
    return false;
  size_t first = index;
  while (first > 0 && group[first].joined == Joined::kSameRule) --first;
  for (size_t k = first; k < group.size() && (k == first || group[k].joined == Joined::kSameRule);
       ++k) {
    if (denies(k)) return true;
  }
  return false;
}

class Store {
 public:
  virtual ~Store() = default;

  // Answers requests[i] in decisions[i]; both must have the same size. In a denied group, a request
  // that would have been allowed reports so, with the remaining requests unchanged. If such a
  // request was counted nevertheless (see TakeRequest::joined), the decision says whether the same
  // request would be allowed now. Thread-safe; blocks only on buckets.
  virtual void Take(base::Strided<const TakeRequest> requests,
                    base::Strided<algorithm::Decision> decisions, base::Instant now) = 0;
  // Answers a request that is alone in its group. It does the same as Take for one request, but
  // faster.
  virtual void TakeOne(const TakeRequest& request, algorithm::Decision& decision,
                       base::Instant now) {
    Take({&request, 1}, {&decision, 1}, now);
  }

  // The limit under which the bucket was last used; null if this store has no such bucket. For
  // commands that name a bucket without its limit. Thread-safe.
  virtual LimitHandle LimitOf(const base::Hash128& /*key*/) { return {}; }

  // ---- Counters. They share the keys of buckets: a key holds one or the other. A request to a key
  // that holds a counter is denied under a limit of 0, and can never fit. A reset under the limit
  // of LimitOf removes the counter. Thread-safe.

  // Unimplemented if this store has no counters; ResourceExhausted if it has no room for their
  // limit.
  virtual absl::StatusOr<algorithm::CounterAnswer> Increment(
      const base::Hash128& /*key*/, const algorithm::CounterChange& /*change*/,
      base::Instant /*now*/) {
    return absl::UnimplementedError("this store has no counters");
  }
  // Empty if the key holds no counter.
  virtual std::optional<algorithm::Counter> FindCounter(const base::Hash128& /*key*/,
                                                        base::Instant /*now*/) {
    return std::nullopt;
  }

  virtual const base::HashSecret& hash_secret() const = 0;
  virtual LimitTable& limits() = 0;
};

}  // namespace headgate::store
