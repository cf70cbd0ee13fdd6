// HoldLeases counts requests out on lease as consumed, for a bucket of each kind.
#include "headgate/algorithm/lease.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "headgate/algorithm/decide.h"

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;

// Leased requests that are granted and not reported. A bucket has too few leases to overflow a sum
// of 64 bits.
struct Outstanding {
  uint64_t all = 0;
  uint64_t live = 0;
  std::optional<Instant> expired_at{};  // the latest expiry among the expired ones
  Instant live_until{0};                // the latest among the others
};

Outstanding OutstandingOf(const Leases& leases, Instant now) {
  Outstanding sums;
  for (const Lease& lease : leases) {
    if (lease.is_mark()) continue;
    sums.all += lease.outstanding();
    if (lease.IsLive(now)) {
      sums.live += lease.outstanding();
      sums.live_until = std::max(sums.live_until, lease.expires_at);
    } else if (!lease.has_ended()) {
      sums.expired_at = std::max(sums.expired_at.value_or(lease.expires_at), lease.expires_at);
    }
  }
  return sums;
}

uint32_t Saturated(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

// Moves the edge, so that the bucket is full again no earlier than at + outstanding·T. The bucket
// owes at most `most` requests.
void HoldEdge(const Limit& limit, Instant at, uint64_t outstanding, uint64_t most,
              BucketState& state) {
  const ExactSpan price = Price(limit, std::min(outstanding, most));
  const ExactSpan edge{static_cast<uint64_t>(at.ns) + price.ns, price.fraction};
  if (edge > ExactSpan{state.edge, state.count}) {
    state.edge = edge.ns;
    state.count = edge.fraction;
  }
}

void HoldTokens(const Limit& limit, const Outstanding& out, BucketState& state, Instant now) {
  if (out.expired_at) HoldEdge(limit, *out.expired_at, out.all, limit.capacity(), state);
  HoldEdge(limit, now, out.live, limit.capacity(), state);
}

void HoldWindow(const Limit& limit, const Outstanding& out, BucketState& state, Instant now) {
  if (state.edge > static_cast<uint64_t>(now.ns)) {
    state.count = std::max(state.count, Saturated(out.live));
    return;
  }
  // A lease of this limit ends with its window. One of an earlier limit may have expired since, and
  // was perhaps spent in the window that follows.
  const bool outlived = out.expired_at && static_cast<uint64_t>(out.expired_at->ns) > state.edge;
  const uint64_t count = outlived ? out.all : out.live;
  if (count == 0) return;
  state.edge = static_cast<uint64_t>(WindowEnd(limit, now).ns);
  state.count = Saturated(count);
}

void HoldCounter(const Limit& limit, const Outstanding& out, BucketState& state, Instant now) {
  const Instant start = now - Duration(static_cast<int64_t>(AdvanceWindows(limit, state, now)));
  const Instant start_before = start - Duration(static_cast<int64_t>(limit.period()));
  WindowCounts counts = WindowCounts::Of(state);
  const bool in_current = out.expired_at && *out.expired_at > start;
  const bool in_previous = out.expired_at && !in_current && *out.expired_at > start_before;
  counts.current = std::max(counts.current, Saturated(in_current ? out.all : out.live));
  if (in_previous) counts.previous = std::max(counts.previous, Saturated(out.all));
  counts.StoreIn(state);
}

void HoldQueue(const Limit& limit, const Outstanding& out, BucketState& state, Instant now) {
  // Nothing drains before the store's clock has reached the bucket's time.
  if (state.edge > static_cast<uint64_t>(now.ns))
    state.edge += static_cast<uint64_t>((out.live_until - now).count());
  // With burst + 1 turns taken, no further request may wait.
  HoldEdge(limit, out.live_until, out.live, limit.capacity() + 1, state);
  state.seen = out.live_until;
}

void HoldLog(const Outstanding& out, BucketState& state, HitLog& hits) {
  while (!hits.empty()) hits.DropOldest();
  state.count = std::max(state.count, Saturated(out.live));
  hits.Append({out.live_until, state.count});
  state.seen = out.live_until;
}

}  // namespace

void HoldLeases(const Limit& limit, const Leases& leases, BucketState& state, HitLog& hits,
                Instant now) {
  if (limit.denies_all() || leases.empty()) return;
  now = std::max(now, state.seen);
  const Outstanding out = OutstandingOf(leases, now);
  if (out.all == 0) return;
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      HoldTokens(limit, out, state, now);
      break;
    case Algorithm::kFixedWindow:
      HoldWindow(limit, out, state, now);
      break;
    case Algorithm::kSlidingWindowCounter:
      HoldCounter(limit, out, state, now);
      break;
    case Algorithm::kLeakyBucketQueue:
      if (out.live > 0) return HoldQueue(limit, out, state, now);
      break;
    case Algorithm::kSlidingWindowLog:
      if (out.live > 0) return HoldLog(out, state, hits);
      break;
  }
  state.seen = now;
}

}  // namespace headgate::algorithm
