#include "headgate/store/lease_hold.h"

#include <algorithm>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/token_bucket.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/leasable.h"

namespace headgate::store {
namespace {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::ExactSpan;
using algorithm::Limit;
using algorithm::WindowCounts;
using base::Instant;

constexpr size_t kLeaseBytes = 32;

// Granted and not reported.
struct Owed {
  uint64_t by_all = 0;
  uint64_t by_live = 0;
  uint64_t expired_at = 0;       // the latest of those that are over; 0: none is
  uint64_t live_expires_at = 0;  // the latest of the others
};

struct Lease {
  uint64_t unreported;
  uint64_t expires_at;
};

Lease TakeLease(Unpacker& in) {
  in.U64();  // node
  in.U64();  // number
  const uint64_t granted = in.U32();
  const uint64_t reported = in.U32();
  return {.unreported = granted - std::min(granted, reported), .expires_at = in.U64()};
}

Owed OwedBy(std::string_view leases, Instant now) {
  Owed owed;
  for (Unpacker in(leases); !in.rest().empty();) {
    const Lease lease = TakeLease(in);
    owed.by_all += lease.unreported;
    if (lease.expires_at > static_cast<uint64_t>(now.ns)) {
      owed.by_live += lease.unreported;
      owed.live_expires_at = std::max(owed.live_expires_at, lease.expires_at);
    } else {
      owed.expired_at = std::max(owed.expired_at, lease.expires_at);
    }
  }
  return owed;
}

uint32_t Saturated(uint64_t count) { return static_cast<uint32_t>(std::min<uint64_t>(count, ~uint32_t{0})); }

// The edge is not before at + owed·T, of which an empty bucket owes no more than `most`.
void HoldEdge(const Limit& limit, uint64_t at, uint64_t owed, uint64_t most, BucketState& state) {
  if (owed == 0) return;
  const ExactSpan price = Price(limit, std::min(owed, most));
  const ExactSpan edge{at + price.ns, price.fraction};
  if (edge > ExactSpan{state.edge, state.count}) {
    state.edge = edge.ns;
    state.count = edge.fraction;
  }
}

void HoldWindow(const Limit& limit, const Owed& owed, BucketState& state, Instant now) {
  const bool open = state.edge > static_cast<uint64_t>(now.ns);
  if (open) {
    state.count = std::max(state.count, Saturated(owed.by_live));
    return;
  }
  // One that has expired since the window ended was spent in the one that follows, perhaps.
  const uint64_t outlived = owed.expired_at > state.edge ? owed.by_all : owed.by_live;
  if (outlived == 0) return;
  state.edge = static_cast<uint64_t>(algorithm::WindowEnd(limit, now).ns);
  state.count = Saturated(outlived);
}

void HoldCounter(const Limit& limit, const Owed& owed, BucketState& state, Instant now) {
  const uint64_t start = static_cast<uint64_t>(now.ns) - AdvanceWindows(limit, state, now);
  WindowCounts counts = WindowCounts::Of(state);
  counts.current = std::max(counts.current, Saturated(owed.expired_at > start ? owed.by_all : owed.by_live));
  if (owed.expired_at <= start && owed.expired_at + limit.period() > start) {
    counts.previous = std::max(counts.previous, Saturated(owed.by_all));
  }
  counts.StoreIn(state);
}

}  // namespace

void HoldOwed(const Limit& limit, std::string_view leases, BucketState& state, HitList& hits, Instant now) {
  if (limit.denies_all() || leases.empty()) return;
  now = std::max(now, state.seen);
  const Owed owed = OwedBy(leases, now);
  if (owed.by_all == 0) return;
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      if (owed.expired_at > 0) HoldEdge(limit, owed.expired_at, owed.by_all, limit.capacity(), state);
      HoldEdge(limit, static_cast<uint64_t>(now.ns), owed.by_live, limit.capacity(), state);
      return;
    case Algorithm::kFixedWindow:
      return HoldWindow(limit, owed, state, now);
    case Algorithm::kSlidingWindowCounter:
      return HoldCounter(limit, owed, state, now);
    case Algorithm::kLeakyBucketQueue:
      if (owed.by_live == 0) return;
      // Nothing drains before the bucket's time is that of the store again.
      if (state.edge > static_cast<uint64_t>(now.ns))
        state.edge += owed.live_expires_at - static_cast<uint64_t>(now.ns);
      // With burst + 1 turns taken nobody may wait.
      HoldEdge(limit, owed.live_expires_at, owed.by_live, limit.capacity() + 1, state);
      break;
    case Algorithm::kSlidingWindowLog: {
      if (owed.by_live == 0) return;
      const uint32_t cost = std::max(state.count, Saturated(owed.by_live));
      hits = {};
      hits.Append({Instant::FromNanos(static_cast<int64_t>(owed.live_expires_at)), cost});
      state.count = cost;
      break;
    }
  }
  state.seen = Instant::FromNanos(static_cast<int64_t>(owed.live_expires_at));
}

std::string KeptLeases(const Limit& limit, std::string_view leases, Instant now) {
  std::string kept;
  if (!KeepsLeases(limit)) return kept;
  for (; leases.size() >= kLeaseBytes; leases.remove_prefix(kLeaseBytes)) {
    Unpacker in(leases);
    if (TakeLease(in).expires_at > static_cast<uint64_t>(now.ns)) kept.append(leases.substr(0, kLeaseBytes));
  }
  return kept;
}

}  // namespace headgate::store
