#include "headgate/algorithm/lease.h"

#include <algorithm>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;

// Granted and not reported, of all.
uint64_t OutstandingOf(const Leases& leases) {
  uint64_t sum = 0;
  for (const Lease& lease : leases) sum += lease.outstanding();
  return sum;
}

uint64_t Left(const Limit& limit, BucketState state, Instant now) {
  NoHits no_hits;
  return Decide(limit, state, no_hits, 0, now).remaining;
}

// The end of the window that holds `now`, which is also that of a window that would open now.
Instant EndOfWindow(const Limit& limit, const BucketState& state, Instant now) {
  if (limit.algorithm() == Algorithm::kFixedWindow) {
    const bool open = state.edge > static_cast<uint64_t>(now.ns);
    return open ? Instant::FromNanos(static_cast<int64_t>(state.edge)) : WindowEnd(limit, now);
  }
  const uint64_t into = limit.period_divider().Remainder(static_cast<uint64_t>(now.ns));
  return now + Duration(static_cast<int64_t>(limit.period() - into));
}

auto Find(Leases& leases, const LeaseId& id) {
  return std::find_if(leases.begin(), leases.end(),
                      [&](const Lease& lease) { return lease.id == id; });
}

// Takes in what a node reports; returns how much came back unspent.
uint64_t Settle(Leases& leases, const LeaseAsk& ask) {
  uint64_t unspent = 0;
  for (const LeaseReport& report : ask.reports) {
    const auto lease = Find(leases, {.node = ask.id.node, .number = report.number});
    if (lease == leases.end()) continue;
    const uint64_t reported = std::max<uint64_t>(lease->reported, report.spent);
    lease->reported = static_cast<uint32_t>(std::min<uint64_t>(lease->granted, reported));
    if (!report.returned) continue;
    unspent += lease->outstanding();
    leases.erase(lease);
  }
  return unspent;
}

// Nodes that hold leases, `node` counted in any case.
uint32_t HoldersOf(const Leases& leases, uint64_t node) {
  std::vector<uint64_t> nodes{node};
  for (const Lease& lease : leases) nodes.push_back(lease.id.node);
  std::sort(nodes.begin(), nodes.end());
  return static_cast<uint32_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

// How much may be granted of `left`. All leases together stay below 2^32, which is the overflow
// argument here and in the scripts.
uint32_t Grantable(const LeaseAsk& ask, uint64_t least, uint64_t left, const Leases& leases,
                   uint32_t holders) {
  left = std::min(left, kLeaseRequestsMax);
  if (left < least || leases.size() >= kLeasesMax) return 0;
  const uint64_t room = kLeaseRequestsMax - std::min(kLeaseRequestsMax, OutstandingOf(leases));
  return static_cast<uint32_t>(std::min(
      {ask.want, left, std::max({least, ask.share, left / (2 * uint64_t{holders})}), room}));
}

}  // namespace

void DropLeases(const Limit& limit, Leases& leases, Instant now) {
  const bool keeps = KeepsLeases(limit.algorithm());
  std::erase_if(leases, [&](const Lease& lease) { return !keeps || !lease.IsLive(now); });
}

void ExpireLeases(const Limit& limit, BucketState& state, Leases& leases, Instant now) {
  if (limit.denies_all()) return;
  now = std::max(now, state.seen);
  NoHits no_hits;
  HoldLeases(limit, leases, state, no_hits, now);
  DropLeases(limit, leases, now);
}

Decision DecideLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      Instant now) {
  ExpireLeases(limit, state, leases, now);
  NoHits no_hits;
  return Decide(limit, state, no_hits, cost, now);
}

Decision RefundLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      Instant now) {
  ExpireLeases(limit, state, leases, now);
  NoHits no_hits;
  const absl::StatusOr<Decision> refunded = Refund(limit, state, no_hits, cost, now);
  HoldLeases(limit, leases, state, no_hits, now);
  return refunded.ok() ? Decide(limit, state, no_hits, 0, now) : Decision{.allowed = false};
}

LeaseGrant AskLease(const Limit& limit, BucketState& state, Leases& leases, const LeaseAsk& ask,
                    Instant now) {
  if (limit.denies_all()) return {.retry_after = ask.want > 0 ? kNever : Duration(0)};
  now = std::max(now, state.seen);
  ExpireLeases(limit, state, leases, now);
  RefundLeased(limit, state, leases, Settle(leases, ask), now);

  LeaseGrant grant{.holders = HoldersOf(leases, ask.id.node)};
  const uint64_t least = std::clamp<uint64_t>(ask.least, 1, kLeaseRequestsMax);
  auto lease = Find(leases, ask.id);
  if (lease == leases.end() && CanLease(limit)) {
    const uint32_t granted = Grantable(ask, least, Left(limit, state, now), leases, grant.holders);
    if (granted > 0) {
      Instant expires_at = base::Clamp(now + std::clamp(ask.ttl, Duration(0), base::kDurationMax));
      if (IsWindow(limit.algorithm()))
        expires_at = std::min(expires_at, EndOfWindow(limit, state, now));
      NoHits no_hits;
      Decide(limit, state, no_hits, granted, now);
      leases.push_back({.id = ask.id, .granted = granted, .reported = 0, .expires_at = expires_at});
      lease = std::prev(leases.end());
    }
  }
  grant.remaining = Left(limit, state, now);
  if (lease != leases.end()) {
    grant.granted = lease->granted;
    grant.ttl = lease->expires_at - now;
  } else if (ask.want > 0) {
    NoHits no_hits;
    BucketState copy = state;
    const Duration retry_after = Decide(limit, copy, no_hits, least, now).retry_after;
    // If enough is left, there are too many leases.
    grant.retry_after = std::max(retry_after, Duration(1));
  }
  return grant;
}

Cost Debit(const Limit& limit, BucketState& state, Leases& leases, Cost cost, Instant now) {
  const uint64_t left = DecideLeased(limit, state, leases, 0, now).remaining;
  const Cost taken = std::min<Cost>(cost, left);
  NoHits no_hits;
  Decide(limit, state, no_hits, limit.spec().count_denied ? cost : taken, now);
  return taken;
}

void SetBackLeased(const Limit& limit, BucketState& state, Leases& leases,
                   Instant& remembered_until, Instant now) {
  const Duration back = state.seen - now;
  for (Lease& lease : leases) lease.expires_at = std::max(Instant{0}, lease.expires_at - back);
  remembered_until = std::max(Instant{0}, remembered_until - back);
  bool open = true;
  if (limit.algorithm() == Algorithm::kFixedWindow) {
    open = state.count > 0 && state.edge > static_cast<uint64_t>(state.seen.ns);
    state.edge = open ? static_cast<uint64_t>(WindowEnd(limit, now).ns) : 0;
    if (!open) state.count = 0;
  } else if (IsTokenBucket(limit.algorithm())) {
    const auto back_ns = static_cast<uint64_t>(back.count());
    if (state.edge < back_ns) state.count = 0;
    state.edge -= std::min(state.edge, back_ns);
  }
  // The counts of a sliding counter become those of the window of now.
  state.seen = now;
  if (!IsWindow(limit.algorithm()) || !open) return;
  const Instant end = EndOfWindow(limit, state, now);
  for (Lease& lease : leases) lease.expires_at = std::min(lease.expires_at, end);
}

Instant KeptUntil(const Limit& limit, const BucketState& state, const Leases& leases, Instant now) {
  const Instant fresh_at = FreshAt(limit, state, NoHits());
  if (leases.empty()) return fresh_at;
  const Instant last =
      std::max_element(leases.begin(), leases.end(), [](const Lease& a, const Lease& b) {
        return a.expires_at < b.expires_at;
      })->expires_at;
  if (IsTokenBucket(limit.algorithm())) {
    // Outstanding requests are refilled only after the last lease expires.
    return std::max(
        fresh_at, last + RoundUp(Price(limit, std::min(OutstandingOf(leases), limit.capacity()))));
  }
  const Instant end = EndOfWindow(limit, state, now);
  if (limit.algorithm() == Algorithm::kFixedWindow && state.edge <= static_cast<uint64_t>(now.ns))
    return fresh_at;
  // A lease of an earlier limit may outlive the window: what it leaves counts in the one in which
  // it expires.
  const Duration lasts = TimeToFull(limit);
  return std::max({fresh_at, end, last > end ? last + lasts : end});
}

}  // namespace headgate::algorithm
