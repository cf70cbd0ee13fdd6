#include "headgate/store/limit_history.h"

#include <algorithm>

#include "headgate/algorithm/decide.h"

namespace headgate::store {

using algorithm::Limit;
using base::Duration;
using base::Instant;

LimitHistory::LimitHistory(std::span<const LimitChange> changes, const Limit& limit,
                           Instant asked_at)
    : changes_(changes), asked_at_(asked_at) {
  const auto replaced = std::find_if(
      changes.rbegin(), changes.rend(),
      [&](const LimitChange& change) { return change.before->limit.spec() == limit.spec(); });
  if (replaced == changes.rend()) return;
  asked_at_ = std::max(asked_at, replaced->at + Duration(1));
  replaced_ago_ = asked_at_ - replaced->at;
}

Instant LimitHistory::OnStoreClock(Instant at, Instant store_now) const {
  return store_now - std::max(Duration(0), asked_at_ - at);
}

void LimitHistory::ChangeThroughAll(const Limit& to, Instant store_now,
                                    StoredBucket& bucket) const {
  const auto change = [&bucket](const Limit& before, const Limit& after, Instant at) {
    algorithm::Change(before, after, bucket.state, bucket.hits, bucket.remembered_until, at);
  };
  // Find the change that ended the limit under which the bucket was last seen: the first change
  // after that time. If there is none, an instance that learned of the change later has used the
  // limit since, so it is the latest one.
  auto ended = changes_.end();
  for (auto step = changes_.begin(); step != changes_.end(); ++step) {
    if (step->before->limit.spec() != bucket.limit.spec()) continue;
    ended = step;
    if (OnStoreClock(step->at, store_now) >= bucket.state.seen) break;
  }
  if (ended == changes_.end()) return change(bucket.limit, to, store_now);
  for (auto step = ended; step != changes_.end(); ++step) {
    const Limit& after = step + 1 != changes_.end() ? (step + 1)->before->limit : to;
    change(step->before->limit, after, OnStoreClock(step->at, store_now));
  }
}

void LimitHistory::CarryOver(const Limit& to, Instant store_now, StoredBucket& bucket) const {
  algorithm::HoldLeases(bucket.limit, bucket.leases, bucket.state, bucket.hits, store_now);
  ChangeThroughAll(to, store_now, bucket);
  const Instant latest = std::max(store_now, bucket.state.seen);
  algorithm::HoldLeases(to, bucket.leases, bucket.state, bucket.hits, latest);
  algorithm::DropLeases(to, bucket.leases, latest);
  bucket.limit = to;
}

}  // namespace headgate::store
