#include "headgate/limiter/lease/lease_denials.h"

#include <algorithm>

#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/lease/lease_limit.h"

namespace headgate::limiter::lease {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;

namespace {

// Long enough for a call, and for spending what it brings.
constexpr Duration kForACall = std::chrono::milliseconds(5);

}  // namespace

// An overloaded key is asked for once in a pause, and not always at the first moment: instances
// that ask in a fixed order would not get equal parts.
void LeaseDenials::OnDecided(LeaseRecord& record, Cost cost, const store::SharedAnswer& answer,
                             BootTime now) const {
  record.shared_rest = answer.decision.remaining;
  const bool was_over = record.reset_at.ns != 0 && record.reset_at <= record.asked_at;
  record.reset_at = now + std::min(answer.decision.reset_after, base::kDurationMax);
  const Duration next_after = answer.grant.next_after;
  // A request that can never fit says nothing about the bucket.
  if (next_after == algorithm::kNever) return;
  if (!answer.decision.allowed) record.refused_at = now;
  record.passes_cost = std::max<Cost>(1, cost);
  record.passes_lacks = record.passes_cost - std::min(record.passes_cost - 1, record.shared_rest);
  record.passes_at = now + std::min(next_after, base::kDurationMax);
  record.heard_at = now;
  record.rest_until = record.asked_at + record.pause + sizing_.SpreadOf(record, now);
  if (!IsWindow(record.limit->limit)) return;
  const Duration ends = WindowEndsAfter(record, now);
  if (!IsSlidingCounter(record.limit->limit)) {
    // The store may have answered as early as it was asked. If a window that was over ends once
    // more, the store's clock was set back, and the window lasts until the clock is there again.
    const bool lasts = was_over && ends < record.pause;
    if (!lasts) record.rest_until = std::min(record.rest_until, record.asked_at + ends);
  } else {
    // The rest of a sliding counter is lost when its window ends.
    const bool is_slow = sizing_.SpreadMost(record) < record.pause;
    const Duration last = is_slow ? kForACall : 2 * record.pause;
    record.rest_until = std::min(record.rest_until, now + std::max(kForACall, ends - last));
  }
}

// Whoever is told less may come to another instance that has asked a moment ago.
Duration LeaseDenials::DeniedFor(const LeaseRecord& record, BootTime now) const {
  const bool is_alone = sizing_.instances() == 1 && !LeaseSizing::IsOverBudget(record, now);
  return is_alone ? Duration(0) : record.pause + sizing_.SpreadMost(record);
}

Decision LeaseDenials::Denied(const LeaseRecord& record, Cost cost, BootTime now) const {
  const uint64_t capacity = record.limit->limit.capacity();
  // Between two calls more may be left in the bucket than a denial can honestly name.
  const uint64_t remaining =
      std::min({capacity, record.leases.left() + record.shared_rest, cost - 1});
  return {.allowed = false,
          .limit = capacity,
          .remaining = remaining,
          .retry_after = cost > capacity ? algorithm::kNever : RetryAfter(record, cost, now),
          .reset_after = ResetAfter(record, remaining, now)};
}

// The moment that the store named was right when it answered. Another instance may have taken all
// of a bucket since; so the cost has to accrue once more.
Duration LeaseDenials::RetryAfter(const LeaseRecord& record, Cost cost, BootTime now) const {
  Duration after = record.pause + sizing_.SpreadMost(record);
  Duration passes = std::max(Duration(0), record.passes_at - now);
  const Duration whole = WholeAfter(record, cost, now);
  if (IsWindow(record.limit->limit)) {
    // It could have passed at once: what was left then is gone.
    const bool is_gone = record.passes_at <= record.heard_at;
    if (cost > record.passes_cost || is_gone) passes = whole;
    if (IsSlidingCounter(record.limit->limit))
      after = std::max(after, std::min(whole, AsLastTime(record, cost)));
  } else {
    after = std::max(after, whole);
    passes += cost > record.passes_cost
                  ? WholeAfter(record, cost - record.passes_cost, now)
                  : Duration(1) - WholeAfter(record, record.passes_cost - cost, now);
  }
  return std::min(std::max(after, passes), base::kDurationMax);
}

// A sliding counter gives back at a pace that only the store knows: as fast as it said.
Duration LeaseDenials::AsLastTime(const LeaseRecord& record, Cost cost) {
  const auto lasts = static_cast<uint64_t>((record.passes_at - record.heard_at).count());
  const base::uint128 whole = base::WideMul(lasts, std::min(cost, record.limit->limit.capacity()));
  return Duration(static_cast<int64_t>(
      std::min<base::uint128>(base::CeilDiv(whole, record.passes_lacks),
                              static_cast<uint64_t>(base::kDurationMax.count()))));
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

}  // namespace headgate::limiter::lease
