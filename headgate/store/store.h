// The store contract: where buckets live. A store decides *where* algorithm::Decide runs, never
// what it computes.
//
// Batch first: everything that is decidable now travels in one call. Requests of a batch are
// decided in their order.
#pragma once

#include <cstdint>
#include <span>

#include "headgate/algorithm/decision.h"
#include "headgate/base/hash.h"
#include "headgate/base/strided.h"
#include "headgate/base/time.h"
#include "headgate/store/limit_table.h"

namespace headgate::store {

enum class Operation : uint8_t {
  kTake,
  kPeek,    // answers as kTake would, and consumes nothing
  kRefund,  // not for the queue
  kReset,
};

// A limit that a rule had before its present one, and when it was replaced. A bucket that was last
// used under it is carried over as of that moment, not of the next request. Within a history, and
// in its request, every entry is another one: a limit that comes back is interned as another
// version.
struct LimitChange {
  const LimitEntry* before;
  base::Instant at;
};

// How a request stands to the one before it. A group is a request and those that are joined to it,
// one after the other.
enum class Joined : uint8_t {
  kNo,         // begins a group, of one or more
  kSameRule,   // of the same group, and by the same rule as the request before it
  kOtherRule,  // of the same group, by another rule
};

struct TakeRequest {
  base::Hash128 key;
  const LimitEntry* limit;                 // pinned by the caller until the call returns
  std::span<const LimitChange> history{};  // oldest first; the last entry was replaced by `limit`
  algorithm::Cost cost = 1;
  Operation operation = Operation::kTake;
  // Unless all requests of a group are allowed, none consumes anything, with one exception: a limit
  // that counts denied requests counts those that it, or another limit of the same rule, denies.
  Joined joined = Joined::kNo;
};

// Whether request `index` of a group that is denied counts all the same. `denies(k)`: request k of
// the group is denied. The requests have `operation`, `limit` and `joined` as a TakeRequest has.
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

  // Answers request i in decisions[i]; there are as many of both. In a joined group that is denied,
  // a request that would have been allowed says so, with what is left untouched. If it has been
  // counted all the same (see TakeRequest::joined), the answer says whether the same request would
  // be allowed now. Thread-safe; does not block on anything but a bucket.
  virtual void Take(base::Strided<const TakeRequest> requests,
                    base::Strided<algorithm::Decision> decisions, base::Instant now) = 0;

  virtual const base::HashSecret& hash_secret() const = 0;
  virtual LimitTable& limits() = 0;
};

}  // namespace headgate::store
