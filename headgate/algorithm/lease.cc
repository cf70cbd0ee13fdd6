#include "headgate/algorithm/lease.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/algorithm/sliding_window_counter.h"
#include "headgate/algorithm/token_bucket.h"

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;

// The sum over all leases of the requests that are granted and not reported.
uint64_t OutstandingOf(const Leases& leases) {
  uint64_t sum = 0;
  for (const Lease& lease : leases) sum += lease.outstanding();
  return sum;
}

// The end of the window that contains `now`; if no window is open, of the one that would open now.
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

// The start of the sliding counter's window that holds `now`.
Instant StartOfWindow(const Limit& limit, Instant now) {
  const uint64_t into = limit.period_divider().Remainder(static_cast<uint64_t>(now.ns));
  return now - Duration(static_cast<int64_t>(into));
}

// Whether a report of this lease, which has ended, could still give something back.
bool MattersStill(const Limit& limit, const BucketState& state, const Lease& lease, Instant now) {
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Ahead(state, now) > ExactSpan{};
    case Algorithm::kFixedWindow:
      return state.edge > static_cast<uint64_t>(now.ns);
    default: {
      const Duration period(static_cast<int64_t>(limit.period()));
      return lease.expires_at > StartOfWindow(limit, now) - period;
    }
  }
}

// Whether a token bucket has certainly refilled this many requests in that time.
bool HasRefilled(const Limit& limit, uint64_t requests, Duration time) {
  return Price(limit, std::min(requests, limit.capacity())) <=
         ExactSpan{static_cast<uint64_t>(time.count()), 0};
}

void ForgetEndedLeases(const Limit& limit, const BucketState& state, Leases& leases, Instant now) {
  std::erase_if(leases, [&](const Lease& lease) {
    return lease.has_ended() && !MattersStill(limit, state, lease, now);
  });
}

// Gives back `unspent` requests of a lease that ended at `ended_at`; they were counted as spent at
// that instant. If the lease ended with its window, `ended_at` is the first instant of the next
// window, so the requests count one nanosecond earlier. A fixed window forgets ended leases when it
// is over.
void GiveBackLate(const Limit& limit, BucketState& state, uint64_t unspent, Instant ended_at,
                  Instant now) {
  if (limit.algorithm() == Algorithm::kFixedWindow) {
    state.count -= static_cast<uint32_t>(std::min<uint64_t>(state.count, unspent));
    return;
  }
  const bool counter = IsWindow(limit.algorithm());
  // A token bucket counted at most its capacity when the lease ended.
  const uint64_t counted = counter ? unspent : std::min(unspent, limit.capacity());
  NoHits no_hits;
  static_cast<void>(
      Undo(limit, state, no_hits, counted, ended_at - Duration(counter ? 1 : 0), now));
}

// Applies the report of a node.
void TakeReports(const Limit& limit, BucketState& state, Leases& leases, const LeaseAsk& ask,
                 Instant now) {
  uint64_t unspent = 0;
  for (const LeaseReport& report : ask.reports) {
    const auto lease = Find(leases, {.node = ask.id.node, .number = report.number});
    if (lease == leases.end()) continue;
    if (lease->has_ended()) {
      if (!report.returned) continue;
      GiveBackLate(limit, state, lease->granted - std::min<uint64_t>(lease->granted, report.spent),
                   lease->expires_at, now);
      leases.erase(lease);
      continue;
    }
    const uint64_t reported = std::max<uint64_t>(lease->reported, report.spent);
    lease->reported = static_cast<uint32_t>(std::min<uint64_t>(lease->granted, reported));
    if (!report.returned) continue;
    unspent += lease->outstanding();
    leases.erase(lease);
  }
  NoHits no_hits;
  static_cast<void>(Refund(limit, state, no_hits, unspent, now));
  HoldLeases(limit, leases, state, no_hits, now);
  ForgetEndedLeases(limit, state, leases, now);
}

uint64_t Microseconds(Duration time) { return static_cast<uint64_t>(time.count() / 1000); }

// The part of `left` that may be granted. All leases together stay below 2^32, so no sum overflows
// here or in the scripts.
uint32_t Grantable(const LeaseAsk& ask, uint64_t left, const Leases& leases,
                   std::optional<Duration> window_left) {
  uint64_t mine = 0;
  uint64_t live = 0;
  bool withholds = false;
  for (const Lease& lease : leases) {
    if (lease.id.node == ask.id.node) mine += lease.outstanding();
    if (!lease.has_ended() && !lease.is_mark()) ++live;
    withholds = withholds || lease.is_mark();
  }
  if (live >= kLeasesMax || ask.want == 0 || (withholds && ask.parts > 1)) return 0;
  left = std::min(left, kLeaseRequestsMax);
  // A brief lease is no more than the node can spend until the window ends.
  uint64_t brief = std::min(ask.brief, kLeaseRequestsMax);
  if (window_left && *window_left < kBrief)
    brief = brief * Microseconds(*window_left) / Microseconds(kBrief);
  const uint64_t all = left + mine;
  if (all < kFewLeft && ask.parts > 1) return 0;
  const uint64_t holds = std::max(std::min(ask.want, all / kSmallShare),
                                  std::min(brief, all / std::max<uint64_t>(1, ask.parts)));
  const uint64_t room = kLeaseRequestsMax - std::min(kLeaseRequestsMax, OutstandingOf(leases));
  return static_cast<uint32_t>(std::min({left, holds - std::min(holds, mine), room}));
}

// The requests that other nodes hold and have not reported.
struct HeldByOthers {
  uint64_t requests = 0;
  Instant until{0};  // when the last of these leases ends
};

HeldByOthers OthersOf(const Leases& leases, uint64_t node) {
  HeldByOthers held;
  for (const Lease& lease : leases) {
    if (lease.id.node == node || lease.outstanding() == 0) continue;
    held.requests += lease.outstanding();
    held.until = std::max(held.until, lease.expires_at);
  }
  return held;
}

// Whether a request that the bucket denies would pass if no requests were leased. A cost that no
// lease can hold never counts as withheld.
bool IsWithheld(const Limit& limit, Cost cost, uint64_t left, uint64_t others) {
  return others > 0 && cost <= std::min({limit.capacity(), left + others, kLeaseRequestsMax});
}

void MarkWithheld(Leases& leases, const HeldByOthers& others, std::optional<Instant> window_end) {
  if (std::any_of(leases.begin(), leases.end(), [](const Lease& lease) { return lease.is_mark(); }))
    return;
  Instant until = base::Clamp(others.until + kWithheldLonger);
  if (window_end) until = std::min(until, *window_end);
  leases.push_back({.id = {}, .expires_at = until});
}

}  // namespace

void DropLeases(const Limit& limit, Leases& leases, Instant now) {
  const bool keeps = KeepsLeases(limit.algorithm());
  std::erase_if(leases, [&](const Lease& lease) { return !keeps || !lease.IsLive(now); });
}

void ExpireLeases(const Limit& limit, BucketState& state, Leases& leases, Instant now) {
  if (limit.denies_all()) return;
  now = std::max(now, state.seen);
  // The unspent part of a lease comes back only into the window in which the lease ended. Remember
  // now whether the window is over: HoldLeases can open the next window, for a lease of an earlier
  // limit.
  const uint64_t edge = state.edge;
  const bool window_is_over =
      limit.algorithm() == Algorithm::kFixedWindow && edge <= static_cast<uint64_t>(now.ns);
  const auto is_of_the_past = [&](const Lease& lease) {
    return window_is_over && static_cast<uint64_t>(lease.expires_at.ns) <= edge;
  };
  NoHits no_hits;
  HoldLeases(limit, leases, state, no_hits, now);
  bool some_end = false;
  for (Lease& lease : leases) {
    if (lease.IsLive(now) || lease.outstanding() == 0) continue;
    lease.reported = Lease::kEnded;
    some_end = true;
  }
  const auto live = std::stable_partition(leases.begin(), leases.end(),
                                          [](const Lease& lease) { return lease.has_ended(); });
  const auto ended = static_cast<size_t>(live - leases.begin());
  const size_t forgotten = ended - std::min(ended, kEndedLeasesMax);
  leases.erase(leases.begin(), leases.begin() + static_cast<ptrdiff_t>(forgotten));
  std::erase_if(leases, [&](const Lease& lease) {
    return !lease.IsLive(now) && (!lease.has_ended() || is_of_the_past(lease));
  });
  // A bucket that is never full would otherwise remember all ended leases.
  if (some_end && IsTokenBucket(limit.algorithm())) {
    std::erase_if(leases, [&](const Lease& lease) {
      return lease.has_ended() && HasRefilled(limit, lease.granted, now - lease.expires_at);
    });
  }
  ForgetEndedLeases(limit, state, leases, now);
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
  ForgetEndedLeases(limit, state, leases, now);
  return refunded.ok() ? Decide(limit, state, no_hits, 0, now) : Decision{.allowed = false};
}

Decision ChargeLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      Instant now) {
  ExpireLeases(limit, state, leases, now);
  NoHits no_hits;
  return Charge(limit, state, no_hits, cost, now);
}

Decision UndoLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                    Instant taken_at, Instant now) {
  ExpireLeases(limit, state, leases, now);
  NoHits no_hits;
  const absl::StatusOr<Decision> undone = Undo(limit, state, no_hits, cost, taken_at, now);
  HoldLeases(limit, leases, state, no_hits, now);
  ForgetEndedLeases(limit, state, leases, now);
  return undone.ok() ? Decide(limit, state, no_hits, 0, now) : Decision{.allowed = false};
}

Decision AskLease(const Limit& limit, BucketState& state, Leases& leases, const LeaseAsk& ask,
                  Instant now, LeaseGrant& grant) {
  grant = {};
  NoHits no_hits;
  if (limit.denies_all()) {
    grant.next_after = kNever;
    return DenyAll(limit, ask.cost);
  }
  now = std::max(now, state.seen);
  ExpireLeases(limit, state, leases, now);
  TakeReports(limit, state, leases, ask, now);

  const HeldByOthers others = OthersOf(leases, ask.id.node);
  const auto again = Find(leases, ask.id);
  Decision decision = Decide(limit, state, no_hits, again == leases.end() ? ask.cost : 0, now);
  if (again != leases.end()) {
    if (!again->has_ended()) {
      grant.granted = again->granted;
      grant.ttl = again->expires_at - now;
    }
  } else if (CanLease(limit)) {
    std::optional<Instant> window_end;
    if (IsWindow(limit.algorithm())) window_end = EndOfWindow(limit, state, now);
    if (!decision.allowed && decision.remaining >= kFewLeft &&
        IsWithheld(limit, ask.cost, decision.remaining, others.requests))
      MarkWithheld(leases, others, window_end);
    const uint32_t granted =
        decision.allowed ? Grantable(ask, decision.remaining, leases,
                                     window_end ? std::optional(*window_end - now) : std::nullopt)
                         : 0;
    if (granted > 0) {
      Instant expires_at = base::Clamp(now + std::clamp(ask.ttl, Duration(0), base::kDurationMax));
      if (window_end) expires_at = std::min(expires_at, *window_end);
      Decide(limit, state, no_hits, granted, now);
      leases.push_back({.id = ask.id, .granted = granted, .reported = 0, .expires_at = expires_at});
      grant.granted = granted;
      grant.ttl = expires_at - now;
    }
  }
  grant.others = others.requests;
  grant.others_until = others.until;
  grant.next_after = NextAfter(limit, state, ask.cost, others.requests, others.until, now);
  if (!decision.allowed) decision.retry_after = grant.next_after;
  const Decision left = Decide(limit, state, no_hits, 0, now);
  decision.remaining = left.remaining;
  decision.reset_after = left.reset_after;
  return decision;
}

Duration NextAfter(const Limit& limit, BucketState state, Cost cost, uint64_t others,
                   Instant others_until, Instant now) {
  NoHits no_hits;
  cost = std::max<Cost>(1, cost);
  // The request comes only at the computed time, so it is not counted as a denied request before.
  LimitSpec spec = limit.spec();
  const bool counts_denied = std::exchange(spec.count_denied, false);
  const Decision decision =
      Decide(counts_denied ? *Limit::Make(spec) : limit, state, no_hits, cost, now);
  Duration after = decision.retry_after;
  if (decision.allowed || decision.never_fits() || others == 0) return after;
  const Duration until = std::max(Duration(1), others_until - now);
  if (IsTokenBucket(limit.algorithm()) && cost + others > limit.capacity()) {
    // While others hold requests, the bucket refills only up to capacity − others. If they spend
    // these, the requests refill from the end of the last lease on.
    const Duration refills =
        RoundUp(Price(limit, std::min(cost, cost + others - limit.capacity())));
    after = std::max(after, std::min(until + refills, base::kDurationMax));
  }
  if (IsWithheld(limit, cost, decision.remaining, others))
    after = std::min(after, until + kWithheldLonger / 2);
  return after;
}

void SetBackLeased(const Limit& limit, BucketState& state, Leases& leases,
                   RememberedUntil& remembered_until, Instant now) {
  const Duration back = state.seen - now;
  std::erase_if(leases, [](const Lease& lease) { return lease.has_ended(); });
  for (Lease& lease : leases) lease.expires_at = std::max(Instant{0}, lease.expires_at - back);
  remembered_until.ns = std::max<int64_t>(0, (remembered_until - back).ns);
  state.block = SetBack(state.block, back);
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
  // The two counts of a sliding counter move to the window that contains `now`.
  state.seen = now;
  if (!IsWindow(limit.algorithm()) || !open) return;
  const Instant end = EndOfWindow(limit, state, now);
  for (Lease& lease : leases) lease.expires_at = std::min(lease.expires_at, end);
}

Instant KeptUntil(const Limit& limit, const BucketState& state, const Leases& leases, Instant now) {
  const Instant fresh_at = FreshAt(limit, state, NoHits());
  // An ended lease does not need the bucket: its unreported part has been counted as spent.
  std::optional<Instant> last_end;
  for (const Lease& lease : leases) {
    if (!lease.has_ended() && !lease.is_mark())
      last_end = std::max(last_end.value_or(Instant{0}), lease.expires_at);
  }
  if (!last_end) return fresh_at;
  const Instant last = *last_end;
  if (IsTokenBucket(limit.algorithm())) {
    // Outstanding requests are refilled only after the last lease expires.
    return std::max(
        fresh_at, last + RoundUp(Price(limit, std::min(OutstandingOf(leases), limit.capacity()))));
  }
  const Instant end = EndOfWindow(limit, state, now);
  if (limit.algorithm() == Algorithm::kFixedWindow && state.edge <= static_cast<uint64_t>(now.ns))
    return fresh_at;
  // A lease of an earlier limit may outlive the window: its unreported part counts in the window in
  // which it expires.
  const Duration lasts = TimeToFull(limit);
  return std::max({fresh_at, end, last > end ? last + lasts : end});
}

Instant MarkedUntil(const Leases& leases) {
  for (const Lease& lease : leases) {
    if (lease.is_mark()) return lease.expires_at;
  }
  return Instant{0};
}

}  // namespace headgate::algorithm
