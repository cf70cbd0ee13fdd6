#include "headgate/limiter/lease_book.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/lease.h"
#include "headgate/limiter/lease_limit.h"

namespace headgate::limiter {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Hash128;

namespace {

// In a bucket that holds less than this for each of its holders, most requests would lie unused on
// lease. Such a bucket is exact for this many TTLs, and costs a message for each request that
// passes. Since it takes `fill_least` to fill, these are few.
constexpr uint64_t kEachLeast = 3;
constexpr int64_t kExactTtls = 4;

// One thread writes at a time.
void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// Whether the store may have done it, though it did not say so.
bool PerhapsDone(const absl::Status& status) {
  return status.code() != absl::StatusCode::kUnavailable &&
         status.code() != absl::StatusCode::kResourceExhausted &&
         status.code() != absl::StatusCode::kPermissionDenied &&
         status.code() != absl::StatusCode::kFailedPrecondition &&
         status.code() != absl::StatusCode::kUnimplemented;
}

}  // namespace

LeaseBook::LeaseBook(const LeaseBookOptions& options, void* records)
    : options_(options),
      idle_after_(options.ttl / 4),
      look_every_(options.ttl / 16),
      first_look_late_(12 * look_every_),
      table_(options.keys_max, options.ttl, records) {}

LeaseVerdict LeaseBook::Take(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                             Namer name, BootTime now) {
  LeaseVerdict verdict;
  LeaseRecord* found = table_.Find(key);
  if (found == nullptr) [[unlikely]] {
    if (!algorithm::CanLease(limit.limit)) return verdict;
    found = table_.Insert(key, limit, now);
    if (found == nullptr) {
      Count(counters_.not_followed);
      return verdict;
    }
    SetTerms(*found);
    if (options_.instances) found->holders = std::max(1u, options_.instances());
  }
  LeaseRecord& record = *found;
  record.taken_at = now;
  if (record.limit != &limit) [[unlikely]] {
    OnChange(record, limit, now);
    if (record.asked_number == 0 && record.leases.HasReturns())
      verdict.action = Return(record, now);
    return verdict;
  }
  if (cost > limit.limit.capacity()) [[unlikely]] {
    // The request never fits, and does not count as demand: no node asks for more than the others
    // need. The store is asked only for the rest, if nothing is known, and if the limit counts
    // denied requests.
    const bool unknown = record.reset_at.ns == 0 && record.leases.empty();
    if (unknown || limit.limit.spec().count_denied) return verdict;
    return {.kind = LeaseVerdict::Kind::kDenied, .decision = denials_.Denied(record, cost, now)};
  }
  record.demand.Add(cost, sizing_.interval(), now);
  const bool spent = Spend(record, cost, now);
  const LeaseAction* action = nullptr;
  if (now >= record.ask_from && (record.leases.left() <= record.renew_below ||
                                 now >= record.renew_at || !spent)) [[unlikely]] {
    action = MaybeAsk(record, cost, spent, name, now);
  }
  verdict = VerdictOf(record, cost, spent, now);
  if (verdict.kind == LeaseVerdict::Kind::kAskStore && action == nullptr &&
      denials_.IsDeniedLately(record, cost, now)) [[unlikely]] {
    // This request finds out whether something is left again. A bucket that fills within a few
    // calls has something for certain, so others may ask too.
    if (record.pause >= options_.timeout) record.denied_until = now + sizing_.PauseOf(record, now);
  }
  verdict.action = action;
  if (!spent && action != nullptr) {
    // Also if the key had nothing left: this request finds out whether it has now, and others are
    // denied meanwhile.
    verdict.kind = LeaseVerdict::Kind::kAwaitLease;
  } else if (verdict.kind == LeaseVerdict::Kind::kAskStore && record.leasable &&
             now < record.ask_from) [[unlikely]] {
    sizing_.SpendBudget(record, now);
  }
  return verdict;
}

LeaseVerdict LeaseBook::TakeAgain(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                                  BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return {};
  const bool spent = Spend(*record, cost, now);
  return VerdictOf(*record, cost, spent, now);
}

std::optional<Decision> LeaseBook::Peek(const Hash128& key, const store::LimitEntry& limit,
                                        Cost cost, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr || LeftIn(*record, now) < cost) return std::nullopt;
  return LeaseDenials::Allowed(*record, now);
}

uint64_t LeaseBook::Spendable(const Hash128& key, const store::LimitEntry& limit, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  return record == nullptr ? 0 : LeftIn(*record, now);
}

uint64_t LeaseBook::LeftIn(LeaseRecord& record, BootTime now) {
  DropExpired(record, now);
  return record.leases.left();
}

LeaseVerdict LeaseBook::VerdictOf(const LeaseRecord& record, Cost cost, bool spent,
                                  BootTime now) const {
  if (spent) [[likely]]
    return {.kind = LeaseVerdict::Kind::kAllowed, .decision = LeaseDenials::Allowed(record, now)};
  if (now < record.denied_until && denials_.IsDeniedLately(record, cost, now)) {
    return {.kind = LeaseVerdict::Kind::kDenied, .decision = denials_.Denied(record, cost, now)};
  }
  return {};
}

bool LeaseBook::Spend(LeaseRecord& record, Cost cost, BootTime now) {
  bool spent = record.leases.SpendFromFirst(cost, now);
  if (!spent && !record.leases.empty()) {
    DropExpired(record, now);
    spent = record.leases.Spend(cost);
  }
  if (spent) Count(counters_.spent, cost);
  return spent;
}

// ---- The store has answered

void LeaseBook::OnExact(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                        const Decision& decision, BootTime asked_at, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return;
  denials_.OnExact(*record, cost, decision, asked_at, now);
}

void LeaseBook::OnRefunded(const Hash128& key, uint64_t remaining, BootTime now) {
  LeaseRecord* const record = table_.Find(key);
  if (record != nullptr) denials_.OnRefunded(*record, remaining, now);
}

Duration LeaseBook::DeniedFor(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                              BootTime now) const {
  const LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return Duration(0);
  return denials_.DeniedFor(*record, cost, now);
}

const LeaseAction* LeaseBook::OnGrant(const Hash128& key, uint64_t number,
                                      const store::SharedAnswer& answer, BootTime now) {
  LeaseRecord* found = table_.Find(key);
  if (found == nullptr || number == 0 || found->asked_number != number) {
    if (answer.status.ok() && answer.grant.granted > 0) Count(counters_.late_grants);
    return nullptr;
  }
  LeaseRecord& record = *found;
  record.asked_number = 0;
  // First what has expired: if its return came too late, the store has counted it as spent.
  DropExpired(record, now);
  Count(counters_.returned, record.leases.OnTold(answer.status.ok()));
  if (!answer.status.ok()) {
    OnFailure(record, number, PerhapsDone(answer.status), now);
  } else {
    record.shared_rest = answer.grant.remaining;
    const bool refused = answer.grant.granted == 0 && record.asked_want > 0;
    sizing_.HearHolders(record, answer.grant.holders, refused, now);
    if (answer.grant.holders * kEachLeast > record.limit->limit.capacity()) {
      record.exact_until = now + kExactTtls * options_.ttl;
    }
    if (answer.grant.granted > 0) {
      OnGranted(record, answer.grant, number, now);
    } else if (record.asked_want > 0) {
      denials_.OnRefused(record, answer.grant, now);
    } else {
      LeaseDenials::HearRest(record, answer.grant.remaining, now);
      record.MayAskFrom(now);
    }
  }
  if (!record.leases.empty()) Enqueue(record, now);
  // After a failure nothing is sent at once, because it would fail again and again.
  const bool returns_now = answer.status.ok() && record.asked_before_change && !closing_;
  record.asked_before_change = false;
  return returns_now && record.leases.HasUnspentReturns() ? Return(record, now) : nullptr;
}

void LeaseBook::OnFailure(LeaseRecord& record, uint64_t number, bool perhaps_done, BootTime now) {
  // The lease is never spent. If it was granted nevertheless, it is returned before it expires.
  if (perhaps_done && record.asked_want > 0) {
    Hold(record, {.number = number,
                  .deadline = record.asked_at + sizing_.Life(options_.ttl),
                  .closed = true});
    record.shared_rest -= std::min(record.shared_rest, record.asked_want);
  }
  if (record.asked_exhausted) record.denied_until = now;
  // A store that does not answer does not mean that the key is scarce.
  record.budget_even_at = std::min(record.budget_even_at, now.ns);
  record.MayAskFrom(now + record.pause);
}

void LeaseBook::OnGranted(LeaseRecord& record, const store::LeaseGrant& grant, uint64_t number,
                          BootTime now) {
  // The life is counted from the ask, so that it ends at the store later than here.
  const BootTime deadline = record.asked_at + sizing_.Life(grant.ttl);
  record.MayAskFrom(now);
  if (now >= deadline) {
    Count(counters_.late_grants);
    return;
  }
  const HeldLease lease{
      .number = number,
      .deadline = deadline,
      .granted = static_cast<uint32_t>(std::min(grant.granted, kLeaseRequestsMax)),
      .closed = closing_ || record.asked_before_change};
  if (!Hold(record, lease) || lease.closed) return;
  record.renew_below = lease.granted / 2;
  record.renew_at = sizing_.RenewAt(record, grant, deadline, number);
  if (IsWindow(record.limit->limit) && grant.ttl < options_.ttl) {
    if (record.asked_at >= record.reset_at) record.granted_in_window = 0;
    record.granted_in_window += static_cast<uint32_t>(grant.granted);
    record.reset_at = now + grant.ttl;
  }
  if (sizing_.IsScarce(record, grant)) {
    denials_.OnScarce(record, grant, now);
  } else {
    record.denied_cost = 0;
  }
}

// ---- Refunds and resets

const HeldLeases* LeaseBook::Held(const Hash128& key) const {
  const LeaseRecord* record = table_.Find(key);
  return record != nullptr ? &record->leases : nullptr;
}

Cost LeaseBook::GiveBack(const Hash128& key, Cost cost, BootTime now) {
  LeaseRecord* record = table_.Find(key);
  if (record == nullptr) return 0;
  DropExpired(*record, now);
  const Cost given_back = record->leases.GiveBack(cost);
  Count(counters_.spent, -given_back);
  return given_back;
}

Cost LeaseBook::Refund(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                       Decision& decision, BootTime now) {
  const LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return 0;
  const Cost given_back = GiveBack(key, cost, now);
  if (given_back > 0) decision = LeaseDenials::Allowed(*record, now);
  return given_back;
}

void LeaseBook::OnReset(const Hash128& key) {
  if (LeaseRecord* record = table_.Find(key)) DropLeases(*record);
}

void LeaseBook::DropAll() {
  table_.ForEach([this](LeaseRecord& record) { DropLeases(record); });
}

void LeaseBook::DropLeases(LeaseRecord& record) {
  record.denied_cost = 0;
  Count(counters_.expired_unspent, record.leases.Clear());
  record.asked_number = 0;
  record.MayAskFrom(record.taken_at);
}

// ---- Asks

const LeaseAction* LeaseBook::MaybeAsk(LeaseRecord& record, Cost cost, bool spent, Namer name,
                                       BootTime now) {
  if (closing_ || !sizing_.IsWorthLease(record)) return nullptr;
  const bool exhausted = denials_.IsDeniedLately(record, cost, now);
  if (exhausted) {
    if (now < record.denied_until) return nullptr;
    // Until the answer arrives, other requests do not ask.
    record.denied_until = now + options_.timeout;
  }
  DropExpired(record, now);
  // The held requests may be enough only together with those left at the store.
  if (!spent) record.leases.Close(kNeverAt);
  if (record.leases.size() + 1 >= HeldLeases::kMax) record.leases.CloseFirst();
  if (record.name.empty()) name(record.name);
  const Cost least = std::max<Cost>(cost, 1);
  record.asked_exhausted = exhausted;
  return Ask(record, sizing_.WantOf(record, least), least, now);
}

const LeaseAction* LeaseBook::Ask(LeaseRecord& record, uint64_t want, Cost least, BootTime now) {
  DropExpired(record, now);
  if (want == 0) record.asked_exhausted = false;
  record.asked_want = want;
  record.asked_least = least;
  record.asked_at = now;
  record.asked_before_change = false;
  if (want > 0) sizing_.SpendBudget(record, now);
  record.asked_over_budget = want > 0 && record.budget_even_at > now.ns;
  record.ask_from = kNeverAt;
  const LeaseAction* action = Message(record, want, least);
  record.asked_number = action->ask.id.number;
  return action;
}

const LeaseAction* LeaseBook::Message(LeaseRecord& record, uint64_t want, Cost least) {
  const uint64_t most =
      std::min({want, kLeaseRequestsMax, std::max(least, LeaseSizing::EvenShare(record))});
  record.asked_all =
      want > 0 && LeaseSizing::MayHaveAll(record) && std::min(most, record.shared_rest) > least;
  if (record.asked_all) least = std::min(most, record.shared_rest);
  const uint32_t report_count = record.leases.Report(reports_);
  Count(counters_.asked);
  action_ = {.key = record.key,
             .name = record.name,
             .limit = record.limit,
             .ask = {.id = {.node = options_.node, .number = ++last_number_},
                     .want = most,
                     .least = least,
                     .share = sizing_.ShareLeft(record),
                     .ttl = options_.ttl,
                     .reports = std::span(reports_).first(report_count)}};
  return &action_;
}

// Counts the held requests from now on; false if there is no room.
bool LeaseBook::Hold(LeaseRecord& record, const HeldLease& lease) {
  uint64_t lost = 0;
  const uint64_t before = record.leases.left();
  if (!record.leases.Add(lease, lost)) return false;
  Count(counters_.expired_unspent, lost);
  Count(counters_.granted, lease.closed ? lease.granted : record.leases.left() - before);
  return true;
}

void LeaseBook::DropExpired(LeaseRecord& record, BootTime now) {
  Count(counters_.expired_unspent, record.leases.DropExpired(now));
}

// ---- Limits

void LeaseBook::SetTerms(LeaseRecord& record) const {
  const Limit& limit = record.limit->limit;
  const Duration fill = FillOf(limit);
  record.leasable = algorithm::CanLease(limit) && fill >= options_.fill_least &&
                    limit.capacity() >= options_.capacity_least;
  record.pause = std::min({options_.pause, fill / 8, options_.ttl});
  record.ask_from = record.leasable ? BootTime{0} : kNeverAt;
  record.renew_below = ~uint32_t{0};
}

// For one ttl the shared bucket admits the larger of both limits. Leases of the old limit are
// returned, so that they do not add to that.
void LeaseBook::OnChange(LeaseRecord& record, const store::LimitEntry& limit, BootTime now) {
  LeaseTable::SetLimit(record, limit);
  SetTerms(record);
  record.exact_until = now + options_.ttl;
  record.denied_cost = 0;
  record.shared_rest = 0;
  record.asked_before_change = record.asked_number != 0;
  DropExpired(record, now);
  record.leases.Close(kNeverAt);
  if (record.asked_number != 0) {
    record.ask_from = kNeverAt;
  } else {
    record.MayAskFrom(now);
  }
}

}  // namespace headgate::limiter
