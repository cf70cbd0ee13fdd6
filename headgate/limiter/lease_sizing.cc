#include "headgate/limiter/lease_sizing.h"

#include <algorithm>

#include "headgate/limiter/ask_budget.h"
#include "headgate/limiter/lease_limit.h"

namespace headgate::limiter {

using algorithm::Cost;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;

namespace {

// A share that this many nodes can each hold while a good part is left for others.
constexpr uint64_t kSmallShare = 32;
// If a lease is a small share, it covers this many times the expected demand, and is granted from
// this many expected requests on.
constexpr uint64_t kAmpleTimes = 4;
constexpr uint64_t kRequestsLeast = 3;
// A window this long tells anew how many hold leases of it long before it ends.
constexpr Duration kLongWindow = std::chrono::hours(1);
// Above this many requests per half TTL, one extra message per lease is negligible.
constexpr uint64_t kBusyRequests = 64;
constexpr int64_t kTurnPauses = 6;
// How many asks a key's budget can be overspent by.
constexpr int64_t kOverspentMost = 32;

// Another part of `whole` for each number: keys that were asked for together are not renewed
// together for ever.
Duration PartOf(Duration whole, uint64_t number) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // Knuth, TAOCP 3, 6.4: multiplicative hashing
  return whole / 256 * static_cast<int64_t>(number * kGolden >> 56);
}

}  // namespace

bool LeaseSizing::IsSmallShare(const LeaseRecord& record, uint64_t requests) {
  return requests <= record.shared_rest / kSmallShare;
}

bool LeaseSizing::IsWorthLease(const LeaseRecord& record) const {
  if (!record.leasable) return false;
  const uint64_t requests = record.demand.requests();
  return requests >= options_.requests_least ||
         (requests >= kRequestsLeast && IsSmallShare(record, record.demand.cost()));
}

// The expected demand per interval; more if there is plenty, so that a key with few requests asks
// less often.
uint64_t LeaseSizing::WantOf(const LeaseRecord& record, Cost least) const {
  const uint64_t expected = record.demand.cost();
  const uint64_t want =
      std::max(expected, std::min(kAmpleTimes * expected, record.shared_rest / kSmallShare));
  return std::clamp(want, least, std::max(least, record.limit->limit.capacity()));
}

// The most that a node asks for at once. Nothing accrues in a window, so the first to ask would get
// half of it.
uint64_t LeaseSizing::EvenShare(const LeaseRecord& record) {
  const Limit& limit = record.limit->limit;
  return IsWindow(limit) ? limit.capacity() / record.holders : kLeaseRequestsMax;
}

// Whether an instance takes all that is left of a fixed window. Usually the store grants half of
// what is left, so that other instances find something. An instance that is alone would ask for
// half of the rest again and again, until it has to pause although there is room. So it takes the
// whole rest if no other instance has held a lease in the last windows and less than half is left.
bool LeaseSizing::MayHaveAll(const LeaseRecord& record) {
  const Limit& limit = record.limit->limit;
  return record.holders == 1 && limit.algorithm() == algorithm::Algorithm::kFixedWindow &&
         !HasPlenty(record, record.shared_rest);
}

// The rest of this instance's even share of a short window in which others hold leases.
uint64_t LeaseSizing::ShareLeft(const LeaseRecord& record) const {
  if (record.holders == 1 || !IsShortWindow(record)) return 0;
  const uint64_t granted = record.asked_at < record.reset_at ? record.granted_in_window : 0;
  return EvenShare(record) - std::min(EvenShare(record), granted);
}

bool LeaseSizing::IsShortWindow(const LeaseRecord& record) const {
  const Limit& limit = record.limit->limit;
  return IsWindow(limit) && FillOf(limit) <= options_.ttl;
}

// The leases of a window end with it, so the first answer in the next one names nobody else: the
// number heard before counts for four periods. The store does not know of instances that it refused
// since others had divided the window among themselves, so a short window that was used up may have
// one holder more.
void LeaseSizing::HearHolders(LeaseRecord& record, uint32_t holders, bool refused,
                              BootTime now) const {
  if (refused && holders > 1 && IsShortWindow(record)) ++holders;
  if (holders < record.holders && now < record.holders_until) return;
  record.holders = std::max<uint32_t>(1, holders);
  record.holders_until = now + 4 * std::min(FillOf(record.limit->limit), kLongWindow);
}

// Whether the key must pause when its grant is spent. An instance that asks more often than others
// would get more than they do.
bool LeaseSizing::IsScarce(const LeaseRecord& record, const store::LeaseGrant& grant) const {
  // The next ask takes all that is left of a window.
  if (MayHaveAll(record) && grant.remaining > 0) return false;
  if (record.asked_over_budget && grant.granted < record.asked_want &&
      !HasPlenty(record, grant.remaining))
    return true;
  const uint64_t found = grant.granted + grant.remaining;
  if (record.asked_exhausted) return found < record.asked_want / 2;
  const uint64_t expected = record.demand.cost() * static_cast<uint64_t>(record.pause.count()) /
                            static_cast<uint64_t>(interval_.count());
  return found <= std::max<uint64_t>(1, expected / 2);
}

// How much longer than a pause an instance waits if others hold leases and tokens come one by one:
// until each of them can be granted as much as this instance was, at most six pauses. Without it
// the instance that asks next after a token gets it, and if requests come at fixed gaps that is
// always the same instance.
Duration LeaseSizing::TurnOf(const LeaseRecord& record, uint64_t granted) const {
  const Limit& limit = record.limit->limit;
  if (record.holders == 1 || limit.algorithm() == algorithm::Algorithm::kFixedWindow)
    return Duration(0);
  const Duration each = FillOf(limit) / static_cast<int64_t>(limit.capacity());
  const Duration round = std::min(each, record.pause) * int64_t{record.holders};
  if (round < record.pause) return Duration(0);
  return std::min({round * std::min(static_cast<int64_t>(granted), kTurnPauses),
                   kTurnPauses * record.pause, options_.ttl / 4});
}

// The pause until a scarce key is asked for again. A bucket that fills quickly would be full before
// the end of a longer pause.
Duration LeaseSizing::PauseOf(const LeaseRecord& record, BootTime now) const {
  const auto random = static_cast<uint64_t>(now.ns) ^ options_.node;
  return record.pause + PartOf(LongestPauseOf(record) - record.pause, random);
}

Duration LeaseSizing::LongestPauseOf(const LeaseRecord& record) const {
  if (record.pause < options_.pause) return record.pause;
  return record.pause + record.pause * options_.pause_spread_percent / 100;
}

// For a request for a lease, or for a request that the store decides because such a request is in
// flight or has failed. A burst can bring thousands of these, which say little about the requests
// after them.
void LeaseSizing::SpendBudget(LeaseRecord& record, BootTime now) const {
  // A little more than the pause, so that what an overspent budget lets through keeps within one
  // call per pause, too.
  const int64_t pause = record.pause.count() / 4 * 5;
  const int64_t most = std::max(record.budget_even_at, now.ns + kOverspentMost * pause);
  record.budget_even_at = std::min(most, AskBudget::Spend(record.budget_even_at, now.ns, pause));
}

Duration LeaseSizing::Life(Duration ttl) const {
  return ttl - Duration((ttl.count() * options_.margin_percent + 99) / 100);
}

// About half way through the life of the lease. If others do not miss it, the message that returns
// its rest brings the next lease; if many requests would have to wait for that, the next lease
// comes a little earlier.
BootTime LeaseSizing::RenewAt(const LeaseRecord& record, const store::LeaseGrant& grant,
                              BootTime deadline, uint64_t number) const {
  const Duration spread = PartOf(grant.ttl / 8, number);
  if (!IsSmallShare(record, std::min(grant.granted, kLeaseRequestsMax)))
    return record.asked_at + grant.ttl / 2 - spread;
  const bool busy = record.demand.requests() >= kBusyRequests;
  return busy ? deadline - grant.ttl / 8 - spread : deadline;
}

}  // namespace headgate::limiter
