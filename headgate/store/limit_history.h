// The previous limits of a rule in a call to a shared store, and how a bucket follows their
// changes.
//
// A stored bucket records its limit and when it was last seen, but not which changes of the rule it
// has been through. If a limit was changed and changed back, the bucket's record therefore does not
// show it. For this case a call says how long ago its limit was last replaced, and a bucket that
// was not seen since then is carried over.
//
// Changes are identified by their age, so the clocks of instances and store need not agree. While a
// call is in transit, changes appear younger by that time. See docs/reference/redis-state.md, "When
// a rule changes".
#pragma once

#include <span>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/store.h"

namespace headgate::store {

class LimitHistory {
 public:
  // Longer ago than any bucket was seen.
  static constexpr base::Duration kNeverReplaced = base::Duration::max();

  // `changes` are those of a rule that now has `limit`, oldest first, and must outlive this object.
  // `asked_at` is the time of the request on the clock of `changes`.
  LimitHistory(std::span<const LimitChange> changes, const algorithm::Limit& limit,
               base::Instant asked_at);

  // How long ago `limit` was last replaced, if the rule has returned to it; otherwise
  // kNeverReplaced. At least one nanosecond, so that a bucket's time shows whether it was used
  // before or after the change.
  base::Duration replaced_ago() const { return replaced_ago_; }
  // The time of the request; one nanosecond after the change if both fall into the same nanosecond.
  base::Instant asked_at() const { return asked_at_; }

  // Converts `bucket` to `to`, the rule's current limit. Applies every change since the bucket was
  // last seen, each at its own time. If the rule never had the bucket's limit, applies one change
  // at `store_now`. Outstanding leases count as consumed before and after.
  void CarryOver(const algorithm::Limit& to, base::Instant store_now, StoredBucket& bucket) const;

 private:
  void ChangeThroughAll(const algorithm::Limit& to, base::Instant store_now,
                        StoredBucket& bucket) const;
  base::Instant OnStoreClock(base::Instant at, base::Instant store_now) const;

  std::span<const LimitChange> changes_;
  base::Instant asked_at_;
  base::Duration replaced_ago_ = kNeverReplaced;
};

}  // namespace headgate::store
