#include "headgate/limiter/lease_denials.h"

#include <algorithm>

#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/lease_limit.h"

namespace headgate::limiter {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;

namespace {

// A key stays scarce for this many pauses after a grant.
constexpr int64_t kScarcePauses = 8;

}  // namespace

void LeaseDenials::OnRefused(LeaseRecord& record, const store::LeaseGrant& grant,
                             BootTime now) const {
  if (grant.remaining >= record.asked_least && record.asked_all) {
    // Another instance has come and taken a part.
    record.denied_cost = 0;
    return record.MayAskFrom(now);
  }
  if (grant.remaining >= record.asked_least) {
    // There is enough: the store has no room for another lease. Nobody is denied for that.
    record.denied_cost = 0;
    return record.MayAskFrom(now + sizing_.interval());
  }
  const Duration retry = std::min(grant.retry_after, base::kDurationMax);
  record.retry_cost = std::max<uint64_t>(1, record.asked_least);
  // The little that is left is for others if this instance has asked too often.
  const bool leaves_rest =
      record.asked_over_budget && !LeaseSizing::HasPlenty(record, grant.remaining);
  record.denied_cost = leaves_rest ? 1 : record.retry_cost;
  record.retry_at = now + retry;
  // Requests held by others may come back before the bucket has refilled.
  const bool may_come_back =
      grant.holders > 1 && (IsWindow(record.limit->limit) || retry > denied_most_);
  record.denied_at = record.asked_at;
  const Duration pause = sizing_.PauseOf(record, now);
  record.denied_until =
      now + std::max(pause, may_come_back ? Duration(0) : std::min(retry, denied_most_));
  record.MayAskFrom(now + pause);
}

// The grant is all that accrues until the key may be asked for again.
void LeaseDenials::OnScarce(LeaseRecord& record, const store::LeaseGrant& grant,
                            BootTime now) const {
  record.denied_cost = 1;
  record.retry_cost = std::max<uint64_t>(1, grant.remaining);
  // Something was left: if the next request comes much later, it waits for an ask.
  record.denied_at =
      record.asked_at - std::max(Duration(0), options_.ttl - kScarcePauses * record.pause);
  const Duration turn = grant.remaining == 0
                            ? sizing_.TurnOf(record, std::min(grant.granted, kLeaseRequestsMax))
                            : Duration(0);
  record.retry_at = record.denied_until = record.asked_at + sizing_.PauseOf(record, now) + turn;
  if (grant.remaining == 0) {
    record.retry_at = std::max(record.retry_at, now + WholeAfter(record, record.retry_cost, now));
  }
  record.MayAskFrom(record.denied_until);
}

// Requests that others have taken since a denial delay the next request of the same cost.
void LeaseDenials::HearRest(LeaseRecord& record, uint64_t remaining, BootTime now) {
  record.shared_rest = remaining;
  if (record.denied_cost == 0 || IsWindow(record.limit->limit) || remaining >= record.retry_cost)
    return;
  record.retry_at = now + WholeAfter(record, record.retry_cost - remaining, now);
}

void LeaseDenials::OnRefunded(LeaseRecord& record, uint64_t remaining, BootTime now) const {
  HearRest(record, remaining, now);
  if (record.denied_cost == 0) return;
  BootTime next = now;
  if (record.budget_even_at > now.ns) {
    next = now + sizing_.PauseOf(record, now);
  } else {
    sizing_.SpendBudget(record, now);
  }
  record.denied_until = std::min(record.denied_until, next);
  if (remaining >= record.retry_cost) record.retry_at = std::min(record.retry_at, next);
}

void LeaseDenials::OnExact(LeaseRecord& record, Cost cost, const Decision& decision,
                           BootTime asked_at, BootTime now) const {
  record.shared_rest = decision.remaining;
  record.reset_at = now + std::min(decision.reset_after, base::kDurationMax);
  if (decision.allowed) {
    // If this request took the last one, one more comes from time to time, and the denial stays. In
    // a pause the store answers only requests that were under way before.
    const bool paused = record.leasable && record.asked_number == 0 && now < record.ask_from;
    if (record.IsDenied(cost) && cost > 0 && decision.remaining > 0 && !paused)
      record.denied_cost = 0;
    // In a window, this request took from what the denied request needs.
    if (record.denied_cost != 0 && cost > 0 && decision.remaining < record.retry_cost &&
        IsWindow(record.limit->limit) && record.reset_at > now) {
      record.retry_at = std::max(record.retry_at, now + WholeAfter(record, record.retry_cost, now));
    }
    return HearRest(record, decision.remaining, now);
  }
  // A request that can never fit says nothing about the bucket. A denial of a smaller cost says
  // more than a denial of a larger one.
  if (decision.never_fits() || cost == 0) return;
  if (record.denied_cost != 0 && record.denied_cost < cost && now < record.denied_until) return;
  const Duration retry = std::min(decision.retry_after, base::kDurationMax);
  record.denied_cost = record.retry_cost = cost;
  record.retry_at = asked_at + retry;
  // A denial does not last for ever: others may return or refund requests, or reset the bucket.
  record.denied_at = asked_at;
  // A pause that began when this request was sent goes on: clients have been told its end.
  const BootTime pause_end = now + sizing_.PauseOf(record, now);
  const BootTime asked_next =
      record.denied_until > now ? std::min(record.denied_until, pause_end) : pause_end;
  const BootTime passes_next = std::max(record.retry_at, asked_next);
  if (passes_next <= now + denied_most_) {
    record.denied_until = passes_next;
  } else {
    // An ask for a lease finds out whether others return what is missing.
    record.denied_until = sizing_.IsWorthLease(record) ? asked_next : now + denied_most_;
  }
}

Duration LeaseDenials::DeniedFor(const LeaseRecord& record, Cost cost, BootTime now) const {
  if (record.denied_until <= now || !IsDeniedLately(record, cost, now) ||
      cost <= record.leases.left())
    return Duration(0);
  return record.denied_until - now;
}

Decision LeaseDenials::Denied(const LeaseRecord& record, Cost cost, BootTime now) const {
  const uint64_t capacity = record.limit->limit.capacity();
  // If the key has to wait for its pause, more may be left in the bucket than a denial can honestly
  // name.
  const uint64_t remaining =
      std::min({capacity, record.leases.left() + record.shared_rest, cost - 1});
  return {
      .allowed = false,
      .limit = capacity,
      .remaining = remaining,
      .retry_after = cost > capacity ? algorithm::kNever : RetryAfter(record, cost, remaining, now),
      .reset_after = ResetAfter(record, remaining, now)};
}

// The first moment at which it can pass if nobody else takes anything, at the earliest when the
// pause is over. A request that costs more than the one that the store spoke of waits longer: for
// what a bucket lacks, or for the next window. Once the moment is over that the store spoke of, the
// ask under way takes what has accrued, and a pause may follow its answer.
Duration LeaseDenials::RetryAfter(const LeaseRecord& record, Cost cost, uint64_t remaining,
                                  BootTime now) const {
  const Limit& limit = record.limit->limit;
  const bool is_over = record.retry_at <= now;
  const bool asking = record.asked_number != 0 && record.asked_want > 0;
  BootTime asked_again = std::max(record.retry_at, record.denied_until);
  if (asking) {
    const BootTime answered = record.asked_at + options_.timeout;
    const Duration pause =
        sizing_.LongestPauseOf(record) + sizing_.TurnOf(record, record.asked_want);
    asked_again = std::max(asked_again, answered + pause);
  }
  Duration enough{0};
  if (IsWindow(limit)) {
    // In a window that has begun since, all is there.
    const bool same = IsSlidingCounter(limit) || record.reset_at > now;
    const uint64_t rest = record.leases.left() + record.shared_rest;
    const bool ask_takes_it = is_over && asking && same && rest < cost + record.asked_least;
    if (cost > record.retry_cost || ask_takes_it) enough = WholeAfter(record, cost, now);
  } else if (is_over) {
    enough = WholeAfter(record, cost - remaining, now);
  } else if (cost > record.retry_cost) {
    // Both are at most kDurationMax, so the sum fits.
    enough = record.retry_at - now + WholeAfter(record, cost - record.retry_cost, now);
  }
  return std::max(asked_again - now, std::min(enough, base::kDurationMax));
}

// Until `cost` requests are there, at most, if nothing is left now and nobody takes anything. In a
// sliding counter all of the limit may count in this window, and weighs on the next one.
Duration LeaseDenials::WholeAfter(const LeaseRecord& record, Cost cost, BootTime now) {
  const Limit& limit = record.limit->limit;
  if (!IsWindow(limit)) return std::min(RoundUp(Price(limit, cost)), base::kDurationMax);
  const Duration ends = WindowEndsAfter(record, now);
  if (!IsSlidingCounter(limit)) return ends;
  const base::uint128 part = base::WideMul(std::min(cost, limit.capacity()), limit.period());
  return ends + Duration(static_cast<int64_t>(base::CeilDiv(part, limit.capacity())));
}

// The time to the end of the open window, if the end of this or another window is known.
Duration LeaseDenials::WindowEndsAfter(const LeaseRecord& record, BootTime now) {
  const Limit& limit = record.limit->limit;
  if (IsCalendar(limit)) return std::max(Duration(0), record.reset_at - now);
  const int64_t period = PeriodOf(limit).count();
  const int64_t ahead = (record.reset_at - now).count() % period;
  return Duration(ahead > 0 ? ahead : ahead + period);
}

// An estimate, like `remaining`: what others hold is not known here.
Duration LeaseDenials::ResetAfter(const LeaseRecord& record, uint64_t remaining, BootTime now) {
  const Limit& limit = record.limit->limit;
  if (!IsWindow(limit)) return RoundUp(Price(limit, limit.capacity() - remaining));
  return record.reset_at > now ? record.reset_at - now : WindowEndsAfter(record, now);
}

Decision LeaseDenials::Allowed(const LeaseRecord& record, BootTime now) {
  const uint64_t capacity = record.limit->limit.capacity();
  const uint64_t remaining = std::min(capacity, record.leases.left() + record.shared_rest);
  return {.allowed = true,
          .limit = capacity,
          .remaining = remaining,
          .reset_after = ResetAfter(record, remaining, now)};
}

// In a window, nothing comes back earlier because less was taken from it.
Decision LeaseDenials::WithHeld(const Limit& limit, Cost cost, const Decision& decision,
                                uint64_t held) {
  const uint64_t room = limit.capacity() - std::min(limit.capacity(), decision.remaining);
  const uint64_t added = std::min(room, held);
  if (added == 0) return decision;
  Decision told = decision;
  told.remaining += added;
  const Duration sooner =
      IsWindow(limit) ? Duration(0)
                      : std::min(RoundUp(Price(limit, added)), base::kDurationMax) - Duration(1);
  told.reset_after = std::max(Duration(0), decision.reset_after - sooner);
  if (decision.allowed || decision.never_fits()) return told;
  told.allowed = told.remaining >= cost;
  told.retry_after =
      told.allowed ? Duration(0) : std::max(Duration(1), decision.retry_after - sooner);
  return told;
}

}  // namespace headgate::limiter
