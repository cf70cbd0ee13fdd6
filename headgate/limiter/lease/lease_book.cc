#include "headgate/limiter/lease/lease_book.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/lease.h"
#include "headgate/limiter/lease/lease_limit.h"

namespace headgate::limiter::lease {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Hash128;

namespace {

// One thread writes at a time.
void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// Whether the store may have done it, though it did not say so.
bool PerhapsDone(const absl::Status& status) {
  return status.code() != absl::StatusCode::kUnavailable &&
         status.code() != absl::StatusCode::kResourceExhausted &&
         status.code() != absl::StatusCode::kCancelled &&
         status.code() != absl::StatusCode::kPermissionDenied &&
         status.code() != absl::StatusCode::kDataLoss &&
         status.code() != absl::StatusCode::kFailedPrecondition &&
         status.code() != absl::StatusCode::kUnimplemented;
}

}  // namespace

LeaseBook::LeaseBook(const LeaseBookOptions& options, void* records)
    : options_(options),
      look_every_(std::min<Duration>(Demand::kInterval / 2, options.ttl / 16)),
      first_look_late_(options.ttl * 3 / 4),
      tiny_look_late_(std::max(first_look_late_, sizing_.Life(options.tiny_ttl) - options.ttl)),
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
  record.demand.Add(cost, now);
  return Decide(record, cost, name, now);
}

LeaseVerdict LeaseBook::TakeAgain(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                                  Namer name, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr || cost > limit.limit.capacity()) return {};
  return Decide(*record, cost, name, now);
}

LeaseVerdict LeaseBook::Decide(LeaseRecord& record, Cost cost, Namer name, BootTime now) {
  const uint64_t lease = Spend(record, cost, now);
  if (lease == 0) [[unlikely]]
    return AskFor(record, cost, name, now);
  LeaseVerdict verdict{.kind = LeaseVerdict::Kind::kAllowed,
                       .decision = LeaseDenials::Allowed(record, now),
                       .lease = lease};
  if (record.leases.left() <= record.renew_below || now >= record.renew_at) [[unlikely]] {
    if (IsRenewalDue(record, now)) {
      verdict.action = Renew(record, now);
    } else if (record.leases.left() == 0) {
      // Reported soon, so that the bucket refills.
      Enqueue(record, now);
    }
  }
  return verdict;
}

// The leases do not suffice. If something is held, or was spent and not yet reported, the message
// returns it, so that the store decides with the whole bucket.
LeaseVerdict LeaseBook::AskFor(LeaseRecord& record, Cost cost, Namer name, BootTime now) {
  if (denials_.IsDenied(record, cost, now)) {
    record.refused_at = now;
    return {.kind = LeaseVerdict::Kind::kDenied, .decision = denials_.Denied(record, cost, now)};
  }
  if (record.asked_number != 0) {
    LeaseVerdict verdict{.kind = LeaseVerdict::Kind::kAwait};
    if (denials_.IsDeniedBeside(record, cost, now))
      verdict.decision = denials_.Denied(record, cost, now);
    return verdict;
  }
  if (closing_) return {};
  EndExpired(record, now);
  const bool few_left = LeaseSizing::IsNearExhaustion(record);
  const bool exact = record.exact || few_left;
  if (!few_left || !LeaseSizing::IsOverBudget(record, now)) record.few_left_asks = 0;
  record.few_left_asks += few_left ? 1 : 0;
  const LeaseWish wish = WishOf(record, now);
  const bool lease =
      now >= record.ask_from && wish.want > 0 && (!exact || sizing_.IsOverloaded(record, now));
  if (!lease && record.leases.empty()) {
    sizing_.SpendBudget(record, now);
    record.asked_at = now;
    return {};
  }
  record.leases.Close(kNeverAt);
  if (record.name.empty()) name(record.name);
  return {.kind = LeaseVerdict::Kind::kAwait,
          .decision = {},
          .action = Ask(record, cost, lease ? wish : sizing_.NoWish(record, now), now)};
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
  EndExpired(record, now);
  return record.leases.left();
}

uint64_t LeaseBook::Spend(LeaseRecord& record, Cost cost, BootTime now) {
  uint64_t lease = 0;
  if (record.leases.SpendFromFirst(cost, now)) {
    lease = record.leases.begin()->number;
  } else if (!record.leases.empty()) {
    EndExpired(record, now);
    if (record.leases.Spend(cost)) lease = record.leases.newest();
  }
  if (lease != 0) Count(counters_.spent, cost);
  return lease;
}

// ---- The store has answered

bool LeaseBook::OnExact(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                        const store::SharedAnswer& answer, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return true;
  if (record->asked_number == 0 && record->leases.empty()) {
    denials_.OnDecided(*record, cost, answer, now);
    return true;
  }
  record->shared_rest = answer.decision.remaining;
  return answer.decision.allowed;
}

void LeaseBook::OnRefunded(const Hash128& key, uint64_t remaining) {
  LeaseRecord* const record = table_.Find(key);
  if (record == nullptr) return;
  LeaseDenials::HearRest(*record, remaining);
}

bool LeaseBook::IsDenied(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                         BootTime now) const {
  const LeaseRecord* const record = table_.Find(key, limit);
  return record != nullptr && denials_.IsDenied(*record, cost, now);
}

Duration LeaseBook::DeniedFor(const Hash128& key, const store::LimitEntry& limit,
                              BootTime now) const {
  const LeaseRecord* const record = table_.Find(key, limit);
  return record == nullptr ? Duration(0) : denials_.DeniedFor(*record, now);
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
  EndExpired(record, now);
  Count(counters_.returned, record.leases.OnTold(answer.status.ok()));
  if (!answer.status.ok()) {
    OnFailure(record, number, PerhapsDone(answer.status), now);
  } else {
    if (record.asked_cost > 0) {
      denials_.OnDecided(record, record.asked_cost, answer, now);
    } else {
      LeaseDenials::HearRest(record, answer.decision.remaining);
    }
    if (answer.grant.granted > 0) {
      OnGranted(record, answer.grant, number, now);
    } else if (record.asked_want > 0) {
      record.renew_at = kNeverAt;
    }
    record.renew_below = static_cast<uint32_t>(record.leases.left() / 2);
  }
  if (!record.leases.empty()) Enqueue(record, now);
  // After a failure nothing is sent at once, because it would fail again and again.
  const bool returns_now = answer.status.ok() && record.asked_before_change && !closing_;
  record.asked_before_change = false;
  return returns_now && record.leases.HasReturns() ? Return(record, now) : nullptr;
}

void LeaseBook::OnFailure(LeaseRecord& record, uint64_t number, bool perhaps_done, BootTime now) {
  // The lease is never spent. If it was granted nevertheless, it is returned.
  if (perhaps_done && record.asked_want > 0) {
    Hold(record, {.number = number,
                  .deadline = record.asked_at + sizing_.Life(record.asked_ttl),
                  .closed = true});
    record.shared_rest -= std::min(record.shared_rest, record.asked_want);
  }
  // A store that does not answer does not mean that the key is asked for too often.
  record.budget_even_at = std::min(record.budget_even_at, now.ns);
  record.MayAskFrom(now + record.pause);
}

void LeaseBook::OnGranted(LeaseRecord& record, const store::LeaseGrant& grant, uint64_t number,
                          BootTime now) {
  // The life is counted from the ask, so that it ends at the store later than here.
  const BootTime deadline = record.asked_at + sizing_.Life(grant.ttl);
  // A lease that comes too late is not spent, but returned.
  if (now >= deadline) Count(counters_.late_grants);
  const HeldLease lease{
      .number = number,
      .deadline = deadline,
      .granted = static_cast<uint32_t>(std::min(grant.granted, kLeaseRequestsMax)),
      .closed = closing_ || record.asked_before_change || now >= deadline};
  if (!Hold(record, lease) || lease.closed) return;
  // Leases that were granted together are not renewed together for ever.
  record.renew_at = deadline - grant.ttl / 8 -
                    Duration(static_cast<int64_t>(static_cast<uint64_t>(grant.ttl.count() / 16) *
                                                  (number % 8) / 8));
}

// ---- Refunds and resets

const HeldLeases* LeaseBook::Held(const Hash128& key) const {
  const LeaseRecord* record = table_.Find(key);
  return record != nullptr ? &record->leases : nullptr;
}

Cost LeaseBook::GiveBack(const Hash128& key, Cost cost, uint64_t lease, BootTime now) {
  LeaseRecord* record = table_.Find(key);
  return record != nullptr ? GiveBack(*record, cost, lease, BootTime{0}, now) : 0;
}

Cost LeaseBook::GiveBack(LeaseRecord& record, Cost cost, uint64_t newest, BootTime until,
                         BootTime now) {
  EndExpired(record, now);
  const Cost given_back = record.leases.GiveBack(cost, newest, until);
  Count(counters_.spent, -given_back);
  return given_back;
}

Cost LeaseBook::Refund(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                       Decision& decision, BootTime now) {
  LeaseRecord* const record = table_.Find(key, limit);
  if (record == nullptr) return 0;
  const Cost given_back = GiveBack(*record, cost, /*newest=*/~uint64_t{0}, /*until=*/now, now);
  if (given_back > 0) decision = LeaseDenials::Allowed(*record, now);
  return given_back;
}

void LeaseBook::OnOverdrawn(const Hash128& key, BootTime now) {
  LeaseRecord* const record = table_.Find(key);
  if (record == nullptr || record->leases.empty()) return;
  record->leases.Close(kNeverAt);
  Enqueue(*record, now);
}

void LeaseBook::OnReset(const Hash128& key) {
  if (LeaseRecord* record = table_.Find(key)) DropLeases(*record);
}

void LeaseBook::DropAll() {
  table_.ForEach([this](LeaseRecord& record) { DropLeases(record); });
}

void LeaseBook::DropLeases(LeaseRecord& record) {
  LeaseDenials::Forget(record);
  Count(counters_.expired_unspent, record.leases.Clear());
  record.asked_number = 0;
  record.MayAskFrom(record.taken_at);
}

// ---- Messages

bool LeaseBook::IsRenewalDue(const LeaseRecord& record, BootTime now) const {
  // Near exhaustion the store is asked when there is need, with all that is held.
  return record.asked_number == 0 && !closing_ && !record.exact && now >= record.ask_from &&
         !LeaseSizing::IsOverBudget(record, now) && !LeaseSizing::IsNearExhaustion(record) &&
         WishOf(record, now).want > 0;
}

// Tiny leases fill a quarter of the table at most: a key that holds one keeps its place.
LeaseWish LeaseBook::WishOf(const LeaseRecord& record, BootTime now) const {
  const bool tiny = looks_[kTinyLooks].size() < options_.keys_max / 4;
  return sizing_.WishOf(record, tiny, now);
}

// In the background: what is held is spent meanwhile.
const LeaseAction* LeaseBook::Renew(LeaseRecord& record, BootTime now) {
  EndExpired(record, now);
  // A lease that ends soon is replaced, not added to.
  record.leases.Close(now + options_.ttl / 4);
  if (record.leases.size() + 1 >= HeldLeases::kMax) record.leases.CloseFirst();
  return Ask(record, 0, WishOf(record, now), now);
}

const LeaseAction* LeaseBook::Ask(LeaseRecord& record, Cost cost, const LeaseWish& wish,
                                  BootTime now) {
  if (cost > 0 || wish.want > 0) sizing_.SpendBudget(record, now);
  record.asked_number = ++last_number_;
  record.asked_cost = cost;
  record.asked_want = wish.want;
  record.asked_at = now;
  record.asked_ttl = wish.ttl;
  record.asked_before_change = false;
  const uint32_t report_count = record.leases.Report(reports_);
  if (const uint64_t returned = record.leases.Returned(now); returned > 0) {
    record.shared_rest += returned;
    LeaseDenials::Forget(record);
  }
  Count(counters_.asked);
  action_ = {.key = record.key,
             .name = record.name,
             .limit = record.limit,
             .ask = {.id = {.node = options_.node, .number = record.asked_number},
                     .cost = cost,
                     .want = wish.want,
                     .brief = wish.brief,
                     .parts = wish.parts,
                     .ttl = wish.ttl,
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

// The unspent rest is reported nevertheless: the store gives it back as far as it is still missing.
// Nothing of it is missing once the bucket is full, or the window over.
void LeaseBook::EndExpired(LeaseRecord& record, BootTime now) {
  if (record.leases.empty()) return;
  record.leases.Close(now + Duration(1));
  const Limit& limit = record.limit->limit;
  const Duration remembered = IsSlidingCounter(limit) ? 2 * FillOf(limit) : FillOf(limit);
  Count(counters_.expired_unspent,
        record.leases.DropEnded(now - std::min(remembered, now - BootTime{0})));
}

// ---- Limits

void LeaseBook::SetTerms(LeaseRecord& record) const {
  const Limit& limit = record.limit->limit;
  record.leasable = algorithm::CanLease(limit) && sizing_.IsLargeEnough(limit);
  record.exact = sizing_.IsExact(limit);
  record.pause = sizing_.PauseOf(limit);
  record.ask_from = record.leasable ? BootTime{0} : kNeverAt;
  record.renew_below = ~uint32_t{0};
}

// For one ttl the shared bucket admits the larger of both limits. Leases of the old limit are
// returned, so that they do not add to that.
void LeaseBook::OnChange(LeaseRecord& record, const store::LimitEntry& limit, BootTime now) {
  LeaseTable::SetLimit(record, limit);
  SetTerms(record);
  record.exact_until = now + options_.ttl;
  LeaseDenials::Forget(record);
  record.shared_rest = 0;
  record.asked_before_change = record.asked_number != 0;
  EndExpired(record, now);
  record.leases.Close(kNeverAt);
  record.MayAskFrom(now);
}

}  // namespace headgate::limiter::lease
