// The limits that a rule had before its present one, as a call to a shared store sees them, and how
// a bucket follows them. A stored bucket names its limit and when it was last seen, not which of
// the rule's changes it has been through: a limit that is changed and changed back leaves a bucket
// that looks unchanged. So a call says how long ago its limit was replaced, if it holds again, and
// a bucket that was not seen since is carried over.
//
// Changes are told by their age, so the clocks of instances and store need not agree. A call that
// takes a while makes them look younger by as much. Docs: docs/reference/redis-state.md, "When a
// rule changes".
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

  // `changes` are those of a rule that has `limit` now, the oldest first, and must outlive this.
  // `asked_at` is the instant of the request on their clock.
  LimitHistory(std::span<const LimitChange> changes, const algorithm::Limit& limit,
               base::Instant asked_at);

  // How long ago `limit` was replaced the last time, if the rule has come back to it; else
  // kNeverReplaced. At least a nanosecond, so that the time of a bucket tells whether it was used
  // before the change or after it.
  base::Duration replaced_ago() const { return replaced_ago_; }
  // As given, or a nanosecond after the change if it is in the same nanosecond.
  base::Instant asked_at() const { return asked_at_; }

  // Makes `bucket` one of `to`, the limit that the rule has now: carries it through every change
  // since it was last seen, each as of its own moment, or as of `store_now` if the rule never had
  // the bucket's limit. What is out on lease counts as consumed before and after.
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
