// One file because every event changes the one record of a key, and all of them keep its invariants
// together.
#include "headgate/limiter/lease_book.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/check.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/ask_budget.h"
#include "headgate/store/pages.h"

namespace headgate::limiter {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Hash128;

namespace {

constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();

// A share that this many nodes can each hold while a good part is left for others.
constexpr uint64_t kSmallShare = 32;
// If a lease is a small share, it covers this many times the expected demand, and is granted from
// this many expected requests on.
constexpr uint64_t kAmpleTimes = 4;
constexpr uint64_t kRequestsLeast = 3;
// In a bucket that holds less than this for each of its holders, most requests would lie unused on
// lease. Such a bucket is exact for this many TTLs, and costs a message for each request that
// passes. Since it takes `fill_least` to fill, these are few.
constexpr uint64_t kEachLeast = 3;
constexpr int64_t kExactTtls = 4;
// A window this long tells anew how many hold leases of it long before it ends.
constexpr Duration kLongWindow = std::chrono::hours(1);
// Above this many requests per half TTL, one extra message per lease is negligible.
constexpr uint64_t kBusyRequests = 64;
// For how many pauses a key stays scarce of which something was granted.
constexpr int64_t kScarcePauses = 8;
constexpr int64_t kTurnPauses = 6;
// How many asks a key's budget can be overspent by.
constexpr int64_t kOverspentMost = 32;

bool IsWindow(const Limit& limit) { return algorithm::IsWindow(limit.algorithm()); }

bool IsSlidingCounter(const Limit& limit) {
  return limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter;
}

// The period of a window that is not a calendar window.
Duration PeriodOf(const Limit& limit) { return Duration(static_cast<int64_t>(limit.period())); }

bool IsCalendar(const Limit& limit) { return algorithm::IsCalendar(limit.spec().align); }

// How long an empty bucket takes to fill.
Duration FillOf(const Limit& limit) {
  if (IsCalendar(limit)) return std::chrono::hours(24 * 28);
  return IsWindow(limit) ? PeriodOf(limit) : Duration(static_cast<int64_t>(limit.span()));
}

// Another part of `whole` for each number: keys that were asked for together are not renewed
// together for ever.
Duration PartOf(Duration whole, uint64_t number) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // Knuth, TAOCP 3, 6.4: multiplicative hashing
  return whole / 256 * static_cast<int64_t>(number * kGolden >> 56);
}

size_t SetsFor(uint32_t keys_max, uint32_t ways) {
  return std::bit_ceil(std::max<size_t>(1, (size_t{keys_max} + ways - 1) / ways));
}

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
      interval_(options.ttl / 2),
      idle_after_(options.ttl / 4),
      denied_most_(options.ttl * 3 / 4),
      look_every_(options.ttl / 16),
      first_look_late_(12 * look_every_),
      sets_(SetsFor(options.keys_max, kWays)),
      records_(static_cast<Record*>(
          records != nullptr
              ? records
              : store::MapPages(BytesOf(options.keys_max), store::HugePages::kLater))),
      owns_pages_(records == nullptr) {
  static_assert(offsetof(Record, leases) + sizeof(uint32_t) * 2 + sizeof(HeldLease) == 128,
                "a decision from the first lease needs two cache lines");
  static_assert(sizeof(Record) == 448, "as LeaseBookOptions and the guide say");
}

LeaseBook::~LeaseBook() {
  for (size_t i = 0; i < sets_.size() * kWays; ++i) {
    if (sets_[i / kWays].prints[i % kWays] != 0) Drop(records_[i]);
  }
  if (owns_pages_) store::UnmapPages(records_, BytesOf(options_.keys_max));
}

size_t LeaseBook::BytesOf(uint32_t keys_max) {
  return SetsFor(keys_max, kWays) * kWays * sizeof(Record);
}

LeaseVerdict LeaseBook::Take(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                             Namer name, BootTime now) {
  LeaseVerdict verdict;
  Record* found = Find(key);
  if (found == nullptr) [[unlikely]] {
    if (!algorithm::CanLease(limit.limit)) return verdict;
    found = Insert(key, limit, now);
    if (found == nullptr) {
      Count(counters_.not_followed);
      return verdict;
    }
  }
  Record& record = *found;
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
    return {.kind = LeaseVerdict::Kind::kDenied, .decision = Denied(record, cost, now)};
  }
  record.demand.Add(cost, interval_, now);
  const bool spent = Spend(record, cost, now);
  const LeaseAction* action = nullptr;
  if (now >= record.ask_from && (record.leases.left() <= record.renew_below ||
                                 now >= record.renew_at || !spent)) [[unlikely]] {
    action = MaybeAsk(record, cost, spent, name, now);
  }
  verdict = VerdictOf(record, cost, spent, now);
  if (verdict.kind == LeaseVerdict::Kind::kAskStore && action == nullptr &&
      IsDeniedLately(record, cost, now)) [[unlikely]] {
    // This one asks whether there is something again. A bucket that fills within a few calls surely
    // has something.
    if (record.pause >= options_.timeout) record.denied_until = now + PauseOf(record, now);
  }
  verdict.action = action;
  if (!spent && action != nullptr) {
    // Also if the key had nothing left: this one finds out whether it has again, and others are
    // denied meanwhile.
    verdict.kind = LeaseVerdict::Kind::kAwaitLease;
  } else if (verdict.kind == LeaseVerdict::Kind::kAskStore && record.leasable &&
             now < record.ask_from) [[unlikely]] {
    SpendBudget(record, now);
  }
  return verdict;
}

LeaseVerdict LeaseBook::TakeAgain(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                                  BootTime now) {
  Record* record = Find(key);
  if (record == nullptr || record->limit != &limit) return {};
  const bool spent = Spend(*record, cost, now);
  return VerdictOf(*record, cost, spent, now);
}

bool LeaseBook::Spend(Record& record, Cost cost, BootTime now) {
  bool spent = record.leases.SpendFromFirst(cost, now);
  if (!spent && !record.leases.empty()) {
    DropExpired(record, now);
    spent = record.leases.Spend(cost);
  }
  if (spent) Count(counters_.spent, cost);
  return spent;
}

void LeaseBook::OnExact(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                        const Decision& decision, BootTime asked_at, BootTime now) {
  Record* record = Find(key);
  if (record == nullptr || record->limit != &limit) return;
  record->shared_rest = decision.remaining;
  record->reset_at = now + std::min(decision.reset_after, base::kDurationMax);
  if (decision.allowed) {
    // The last one of all says only that there is one more from time to time. While a key waits for
    // its pause the store only answers what was under way before.
    const bool paused = record->leasable && record->asked_number == 0 && now < record->ask_from;
    if (IsDenied(*record, cost) && cost > 0 && decision.remaining > 0 && !paused)
      record->denied_cost = 0;
    // A request that passed in a window leaves less for the one that was denied before.
    if (record->denied_cost != 0 && cost > 0 && decision.remaining < record->retry_cost &&
        IsWindow(limit.limit) && record->reset_at > now) {
      record->retry_at =
          std::max(record->retry_at, now + WholeAfter(*record, record->retry_cost, now));
    }
    return HearRest(*record, decision.remaining, now);
  }
  // A request that can never fit says nothing about the bucket. A denial of a smaller cost says
  // more than a denial of a larger one.
  if (decision.never_fits() || cost == 0) return;
  if (record->denied_cost != 0 && record->denied_cost < cost && now < record->denied_until) return;
  const Duration retry = std::min(decision.retry_after, base::kDurationMax);
  record->denied_cost = record->retry_cost = cost;
  record->retry_at = asked_at + retry;
  // Not for ever: others may return or refund what they took, and someone may reset the bucket.
  record->denied_at = asked_at;
  // A pause that began when this request was sent goes on: others have been told when it ends.
  const BootTime pause_end = now + PauseOf(*record, now);
  const BootTime asked_next =
      record->denied_until > now ? std::min(record->denied_until, pause_end) : pause_end;
  const BootTime passes_next = std::max(record->retry_at, asked_next);
  if (passes_next <= now + denied_most_) {
    record->denied_until = passes_next;
  } else {
    // An ask for a lease finds out whether others hold what is missing.
    record->denied_until = IsWorthLease(*record) ? asked_next : now + denied_most_;
  }
}

Duration LeaseBook::DeniedFor(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                              BootTime now) const {
  const Record* record = Find(key);
  if (record == nullptr || record->limit != &limit || record->denied_until <= now ||
      !IsDeniedLately(*record, cost, now) || cost <= record->leases.left())
    return Duration(0);
  return record->denied_until - now;
}

const LeaseAction* LeaseBook::OnGrant(const Hash128& key, uint64_t number,
                                      const store::SharedAnswer& answer, BootTime now) {
  Record* found = Find(key);
  if (found == nullptr || number == 0 || found->asked_number != number) {
    if (answer.status.ok() && answer.grant.granted > 0) Count(counters_.late_grants);
    return nullptr;
  }
  Record& record = *found;
  record.asked_number = 0;
  // First what has expired: if its return came too late, the store has counted it as spent.
  DropExpired(record, now);
  Count(counters_.returned, record.leases.OnTold(answer.status.ok()));
  if (!answer.status.ok()) {
    OnFailure(record, number, PerhapsDone(answer.status), now);
  } else {
    record.shared_rest = answer.grant.remaining;
    const bool refused = answer.grant.granted == 0 && record.asked_want > 0;
    HearHolders(record, answer.grant.holders, refused, now);
    if (answer.grant.holders * kEachLeast > record.limit->limit.capacity()) {
      record.exact_until = now + kExactTtls * options_.ttl;
    }
    if (answer.grant.granted > 0) {
      OnGranted(record, answer.grant, number, now);
    } else if (record.asked_want > 0) {
      OnRefused(record, answer.grant, now);
    } else {
      HearRest(record, answer.grant.remaining, now);
      MayAskFrom(record, now);
    }
  }
  if (!record.leases.empty()) Enqueue(record, now);
  // Not where it could not be told: it would be tried for ever.
  const bool returns_now = answer.status.ok() && record.asked_before_change && !closing_;
  record.asked_before_change = false;
  return returns_now && record.leases.HasUnspentReturns() ? Return(record, now) : nullptr;
}

bool LeaseBook::IsShortWindow(const Record& record) const {
  const Limit& limit = record.limit->limit;
  return IsWindow(limit) && FillOf(limit) <= options_.ttl;
}

// The leases of a window end with it, so the first answer in the next one names nobody else: the
// number heard before counts for four periods. The store does not know of instances that it refused
// since others had divided the window among themselves, so a short window that was used up may have
// one holder more.
void LeaseBook::HearHolders(Record& record, uint32_t holders, bool refused, BootTime now) const {
  if (refused && holders > 1 && IsShortWindow(record)) ++holders;
  if (holders < record.holders && now < record.holders_until) return;
  record.holders = std::max<uint32_t>(1, holders);
  record.holders_until = now + 4 * std::min(FillOf(record.limit->limit), kLongWindow);
}

void LeaseBook::OnFailure(Record& record, uint64_t number, bool perhaps_done, BootTime now) {
  // It is never spent; but should it have been granted, it need not wait for its end.
  if (perhaps_done && record.asked_want > 0) {
    Hold(record,
         {.number = number, .deadline = record.asked_at + Life(options_.ttl), .closed = true});
    record.shared_rest -= std::min(record.shared_rest, record.asked_want);
  }
  if (record.asked_exhausted) record.denied_until = now;
  // A store that does not answer says nothing about how short the key is.
  record.budget_even_at = std::min(record.budget_even_at, now.ns);
  MayAskFrom(record, now + record.pause);
}

void LeaseBook::OnGranted(Record& record, const store::LeaseGrant& grant, uint64_t number,
                          BootTime now) {
  // Counted from before it was asked for, so that the store's own count ends later.
  const BootTime deadline = record.asked_at + Life(grant.ttl);
  MayAskFrom(record, now);
  if (now >= deadline) {
    Count(counters_.late_grants);
    return;
  }
  const HeldLease lease{.number = number,
                        .deadline = deadline,
                        .granted = static_cast<uint32_t>(std::min(grant.granted, kU32Max)),
                        .closed = closing_ || record.asked_before_change};
  if (!Hold(record, lease) || lease.closed) return;
  record.renew_below = lease.granted / 2;
  if (!IsSmallShare(record, lease.granted)) {
    record.renew_at = record.asked_at + grant.ttl / 2 - PartOf(grant.ttl / 8, number);
  } else {
    // Others do not miss it: the message that returns the rest of it brings the next lease. If many
    // would wait for that, the next lease comes earlier.
    const bool busy = record.demand.requests() >= kBusyRequests;
    record.renew_at = busy ? deadline - grant.ttl / 8 - PartOf(grant.ttl / 8, number) : deadline;
  }
  if (IsWindow(record.limit->limit) && grant.ttl < options_.ttl) {
    if (record.asked_at >= record.reset_at) record.granted_in_window = 0;
    record.granted_in_window += static_cast<uint32_t>(grant.granted);
    record.reset_at = now + grant.ttl;
  }
  if (IsScarce(record, grant)) {
    // No more than this accrues until the key may be asked for again.
    record.denied_cost = 1;
    record.retry_cost = std::max<uint64_t>(1, grant.remaining);
    // Something was left: if the next request comes much later, it waits for an ask.
    record.denied_at =
        record.asked_at - std::max(Duration(0), options_.ttl - kScarcePauses * record.pause);
    const Duration turn = grant.remaining == 0 ? TurnOf(record, lease.granted) : Duration(0);
    record.retry_at = record.denied_until = record.asked_at + PauseOf(record, now) + turn;
    if (grant.remaining == 0) {
      record.retry_at = std::max(record.retry_at, now + WholeAfter(record, record.retry_cost, now));
    }
    MayAskFrom(record, record.denied_until);
  } else {
    record.denied_cost = 0;
  }
}

// How much longer than a pause an instance waits if others hold leases and tokens come one by one:
// until each of them can be granted as much as this instance was, at most six pauses. Without it
// the instance that asks next after a token gets it, and if requests come at fixed gaps that is
// always the same instance.
Duration LeaseBook::TurnOf(const Record& record, uint64_t granted) const {
  const Limit& limit = record.limit->limit;
  if (record.holders == 1 || limit.algorithm() == algorithm::Algorithm::kFixedWindow)
    return Duration(0);
  const Duration each = FillOf(limit) / static_cast<int64_t>(limit.capacity());
  const Duration round = std::min(each, record.pause) * int64_t{record.holders};
  if (round < record.pause) return Duration(0);
  return std::min({round * std::min(static_cast<int64_t>(granted), kTurnPauses),
                   kTurnPauses * record.pause, options_.ttl / 4});
}

// Whether the key must pause once its grant is spent. If it asks more often than others, it gets
// more than they do.
bool LeaseBook::IsScarce(const Record& record, const store::LeaseGrant& grant) const {
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

void LeaseBook::OnRefused(Record& record, const store::LeaseGrant& grant, BootTime now) {
  if (grant.remaining >= record.asked_least && record.asked_all) {
    // Another instance has come and taken a part.
    record.denied_cost = 0;
    return MayAskFrom(record, now);
  }
  if (grant.remaining >= record.asked_least) {
    // There is enough: the store has no room for another lease. Nobody is denied for that.
    record.denied_cost = 0;
    return MayAskFrom(record, now + interval_);
  }
  const Duration retry = std::min(grant.retry_after, base::kDurationMax);
  record.retry_cost = std::max<uint64_t>(1, record.asked_least);
  // The little that is left is for others if this instance has asked too often.
  const bool leaves_rest = record.asked_over_budget && !HasPlenty(record, grant.remaining);
  record.denied_cost = leaves_rest ? 1 : record.retry_cost;
  record.retry_at = now + retry;
  // Requests held by others may come back before the bucket has refilled.
  const bool may_come_back =
      grant.holders > 1 && (IsWindow(record.limit->limit) || retry > denied_most_);
  record.denied_at = record.asked_at;
  const Duration pause = PauseOf(record, now);
  record.denied_until =
      now + std::max(pause, may_come_back ? Duration(0) : std::min(retry, denied_most_));
  MayAskFrom(record, now + pause);
}

const HeldLeases* LeaseBook::Held(const Hash128& key) const {
  const Record* record = Find(key);
  return record != nullptr ? &record->leases : nullptr;
}

Cost LeaseBook::GiveBack(const Hash128& key, Cost cost, BootTime now) {
  Record* record = Find(key);
  if (record == nullptr) return 0;
  DropExpired(*record, now);
  const Cost given_back = record->leases.GiveBack(cost);
  Count(counters_.spent, -given_back);
  return given_back;
}

Cost LeaseBook::Refund(const Hash128& key, const store::LimitEntry& limit, Cost cost,
                       Decision& decision, BootTime now) {
  const Record* record = Find(key);
  if (record == nullptr || record->limit != &limit) return 0;
  const Cost given_back = GiveBack(key, cost, now);
  if (given_back > 0) decision = Allowed(*record, now);
  return given_back;
}

// Requests taken by others since a denial are missing for a request that costs as much.
void LeaseBook::HearRest(Record& record, uint64_t remaining, BootTime now) {
  record.shared_rest = remaining;
  if (record.denied_cost == 0 || IsWindow(record.limit->limit) || remaining >= record.retry_cost)
    return;
  record.retry_at = now + WholeAfter(record, record.retry_cost - remaining, now);
}

void LeaseBook::OnRefunded(const Hash128& key, uint64_t remaining, BootTime now) {
  Record* const record = Find(key);
  if (record == nullptr) return;
  HearRest(*record, remaining, now);
  if (record->denied_cost == 0) return;
  BootTime next = now;
  if (record->budget_even_at > now.ns) {
    next = now + PauseOf(*record, now);
  } else {
    SpendBudget(*record, now);
  }
  record->denied_until = std::min(record->denied_until, next);
  if (remaining >= record->retry_cost) record->retry_at = std::min(record->retry_at, next);
}

void LeaseBook::OnReset(const Hash128& key) {
  if (Record* record = Find(key)) DropLeases(*record);
}

void LeaseBook::DropAll() {
  for (size_t i = 0; i < sets_.size() * kWays; ++i) {
    if (sets_[i / kWays].prints[i % kWays] != 0) DropLeases(records_[i]);
  }
}

void LeaseBook::DropLeases(Record& record) {
  record.denied_cost = 0;
  Count(counters_.expired_unspent, record.leases.Clear());
  record.asked_number = 0;
  MayAskFrom(record, record.taken_at);
}

// ---- Asking

bool LeaseBook::IsSmallShare(const Record& record, uint64_t requests) {
  return requests <= record.shared_rest / kSmallShare;
}

bool LeaseBook::IsWorthLease(const Record& record) const {
  if (!record.leasable) return false;
  const uint64_t requests = record.demand.requests();
  return requests >= options_.requests_least ||
         (requests >= kRequestsLeast && IsSmallShare(record, record.demand.cost()));
}

const LeaseAction* LeaseBook::MaybeAsk(Record& record, Cost cost, bool spent, Namer name,
                                       BootTime now) {
  if (closing_ || !IsWorthLease(record)) return nullptr;
  const bool exhausted = IsDeniedLately(record, cost, now);
  if (exhausted) {
    if (now < record.denied_until) return nullptr;
    // Those that come until the answer does need not ask the same.
    record.denied_until = now + options_.timeout;
  }
  DropExpired(record, now);
  // Only the requests held and those left at the store together may be enough.
  if (!spent) record.leases.Close(kNeverAt);
  if (record.leases.size() + 1 >= HeldLeases::kMax) record.leases.CloseFirst();
  if (record.name.empty()) name(record.name);
  const Cost least = std::max<Cost>(cost, 1);
  record.asked_exhausted = exhausted;
  return Ask(record, WantOf(record, least), least, now);
}

// Until a scarce key is asked for again. A bucket that fills quickly would run over in a longer
// pause.
Duration LeaseBook::PauseOf(const Record& record, BootTime now) const {
  const auto random = static_cast<uint64_t>(now.ns) ^ options_.node;
  return record.pause + PartOf(LongestPauseOf(record) - record.pause, random);
}

Duration LeaseBook::LongestPauseOf(const Record& record) const {
  if (record.pause < options_.pause) return record.pause;
  return record.pause + record.pause * options_.pause_spread_percent / 100;
}

// The expected demand per interval. If there is plenty, some more, so that a key that is rarely
// asked for does not ask again so soon.
uint64_t LeaseBook::WantOf(const Record& record, Cost least) const {
  const uint64_t expected = record.demand.cost();
  const uint64_t want =
      std::max(expected, std::min(kAmpleTimes * expected, record.shared_rest / kSmallShare));
  return std::clamp(want, least, std::max(least, record.limit->limit.capacity()));
}

const LeaseAction* LeaseBook::Ask(Record& record, uint64_t want, Cost least, BootTime now) {
  DropExpired(record, now);
  if (want == 0) record.asked_exhausted = false;
  record.asked_want = want;
  record.asked_least = least;
  record.asked_at = now;
  record.asked_before_change = false;
  if (want > 0) SpendBudget(record, now);
  record.asked_over_budget = want > 0 && record.budget_even_at > now.ns;
  record.ask_from = kNeverAt;
  const LeaseAction* action = Message(record, want, least);
  record.asked_number = action->ask.id.number;
  return action;
}

// The most that a node asks for at once. Nothing accrues in a window, so the first to ask would get
// half of it.
uint64_t LeaseBook::EvenShare(const Record& record) {
  const Limit& limit = record.limit->limit;
  return IsWindow(limit) ? limit.capacity() / record.holders : kU32Max;
}

// Whether an instance takes all that is left of a fixed window. The store grants half of what is
// left, so that other instances find something. If none has held a lease in the last windows, and
// less than half is left, an instance that needs all of it would ask again and again for half of
// the rest, until its budget denies requests that there is room for.
bool LeaseBook::MayHaveAll(const Record& record) {
  const Limit& limit = record.limit->limit;
  return record.holders == 1 && limit.algorithm() == algorithm::Algorithm::kFixedWindow &&
         !HasPlenty(record, record.shared_rest);
}

// The rest of this instance's even share of a short window in which others hold leases.
uint64_t LeaseBook::ShareLeft(const Record& record) const {
  if (record.holders == 1 || !IsShortWindow(record)) return 0;
  const uint64_t granted = record.asked_at < record.reset_at ? record.granted_in_window : 0;
  return EvenShare(record) - std::min(EvenShare(record), granted);
}

const LeaseAction* LeaseBook::Message(Record& record, uint64_t want, Cost least) {
  const uint64_t most = std::min({want, kU32Max, std::max(least, EvenShare(record))});
  record.asked_all = want > 0 && MayHaveAll(record) && std::min(most, record.shared_rest) > least;
  if (record.asked_all) least = std::min(most, record.shared_rest);
  const uint32_t report_count = record.leases.Report(reports_);
  Count(counters_.asked);
  action_ = {.key = record.key,
             .name = record.name,
             .limit = record.limit,
             .ask = {.id = {.node = options_.node, .number = ++last_number_},
                     .want = most,
                     .least = least,
                     .share = ShareLeft(record),
                     .ttl = options_.ttl,
                     .reports = std::span(reports_).first(report_count)}};
  return &action_;
}

// For a request for a lease, or for a request that the store decides because such a request is in
// flight or has failed. A burst can bring thousands of these, which say little about the requests
// after them.
void LeaseBook::SpendBudget(Record& record, BootTime now) const {
  // A little more than the pause, so that what an overspent budget lets through keeps within one
  // call per pause, too.
  const int64_t pause = record.pause.count() / 4 * 5;
  const int64_t most = std::max(record.budget_even_at, now.ns + kOverspentMost * pause);
  record.budget_even_at = std::min(most, AskBudget::Spend(record.budget_even_at, now.ns, pause));
}

// Counts the held requests from now on; false if there is no room.
bool LeaseBook::Hold(Record& record, const HeldLease& lease) {
  uint64_t lost = 0;
  const uint64_t before = record.leases.left();
  if (!record.leases.Add(lease, lost)) return false;
  Count(counters_.expired_unspent, lost);
  Count(counters_.granted, lease.closed ? lease.granted : record.leases.left() - before);
  return true;
}

void LeaseBook::MayAskFrom(Record& record, BootTime at) const {
  record.ask_from = record.leasable ? std::max(at, record.exact_until) : kNeverAt;
}

void LeaseBook::DropExpired(Record& record, BootTime now) {
  Count(counters_.expired_unspent, record.leases.DropExpired(now));
}

Duration LeaseBook::Life(Duration ttl) const {
  return ttl - Duration((ttl.count() * options_.margin_percent + 99) / 100);
}

// ---- Time

BootTime LeaseBook::next_wake() const {
  BootTime at = kNeverAt;
  for (const TimerQueue& looks : looks_) {
    if (!looks.empty()) at = std::min(at, looks.due());
  }
  if (at == kNeverAt) return at;
  // In steps, so that a book that holds thousands wakes nobody thousands of times.
  const int64_t step = std::max<int64_t>(1, look_every_.count() / 8);
  return BootTime{(at.ns + step - 1) / step * step};
}

bool LeaseBook::OnTime(BootTime now, Perform perform, uint32_t keys_most) {
  for (TimerQueue& looks : looks_) {
    for (; !looks.empty() && looks.due() <= now; --keys_most) {
      if (keys_most == 0) return false;
      Record& record = records_[looks.Take()];
      record.queued = false;
      const LeaseAction* action = Look(record, now);
      if (!record.leases.empty()) Enqueue(record, now);
      if (action != nullptr) perform(*action);
    }
  }
  return true;
}

const LeaseAction* LeaseBook::Look(Record& record, BootTime now) {
  DropExpired(record, now);
  const Duration quiet = now - record.taken_at;
  const bool idle = quiet >= idle_after_ && !IsSmallShare(record, record.leases.left());
  // A lease that would end before the next look, and before a message could arrive, is returned
  // now.
  record.leases.Close(idle ? kNeverAt : now + 2 * look_every_);
  if (record.asked_number != 0) return nullptr;
  if (!record.leases.HasUnspentReturns() && !(idle && record.leases.HasReturns())) return nullptr;
  // The message goes anyway: where the key is asked for still, it brings the next lease.
  const bool wanted =
      quiet < idle_after_ && record.leases.left() < record.demand.cost() && record.denied_cost == 0;
  if (idle || closing_ || !wanted || now < record.ask_from || !IsWorthLease(record))
    return Return(record, now);
  record.asked_exhausted = false;
  return Ask(record, WantOf(record, 1), 1, now);
}

void LeaseBook::Enqueue(Record& record, BootTime now) {
  if (std::exchange(record.queued, true)) return;
  // A look is early enough two of the short delays before the end.
  const bool late = IsSmallShare(record, record.leases.left()) &&
                    record.leases.begin()->deadline >= now + first_look_late_ + 2 * look_every_;
  looks_[late ? 1 : 0].Add(static_cast<uint32_t>(&record - records_), now);
}

const LeaseAction* LeaseBook::ReturnNext(BootTime now) {
  HEADGATE_DCHECK(closing_);
  for (TimerQueue& looks : looks_) {
    while (!looks.empty()) {
      Record& record = records_[looks.Take()];
      record.queued = false;
      DropExpired(record, now);
      record.leases.Close(kNeverAt);
      if (record.asked_number == 0 && record.leases.HasReturns()) return Return(record, now);
    }
  }
  return nullptr;
}

// ---- Limits

void LeaseBook::SetLimit(Record& record, const store::LimitEntry& entry) {
  const Limit& limit = entry.limit;
  if (record.limit_pin)
    record.limit_pin->owner->lease_records.fetch_sub(1, std::memory_order_relaxed);
  entry.owner->lease_records.fetch_add(1, std::memory_order_relaxed);
  record.limit = &entry;
  record.limit_pin = store::LimitHandle::Pin(entry);
  const Duration fill = FillOf(limit);
  record.leasable = algorithm::CanLease(limit) && fill >= options_.fill_least &&
                    limit.capacity() >= options_.capacity_least;
  record.pause = std::min({options_.pause, fill / 8, options_.ttl});
  record.ask_from = record.leasable ? BootTime{0} : kNeverAt;
  record.renew_below = ~uint32_t{0};
}

// The shared bucket keeps the larger of both bounds for a ttl; what is held of the old limit is not
// added to that.
void LeaseBook::OnChange(Record& record, const store::LimitEntry& limit, BootTime now) {
  SetLimit(record, limit);
  record.exact_until = now + options_.ttl;
  record.denied_cost = 0;
  record.shared_rest = 0;
  record.asked_before_change = record.asked_number != 0;
  DropExpired(record, now);
  record.leases.Close(kNeverAt);
  if (record.asked_number != 0) {
    record.ask_from = kNeverAt;
  } else {
    MayAskFrom(record, now);
  }
}

// ---- Decisions

LeaseVerdict LeaseBook::VerdictOf(const Record& record, Cost cost, bool spent, BootTime now) const {
  if (spent) [[likely]]
    return {.kind = LeaseVerdict::Kind::kAllowed, .decision = Allowed(record, now)};
  if (now < record.denied_until && IsDeniedLately(record, cost, now)) {
    return {.kind = LeaseVerdict::Kind::kDenied, .decision = Denied(record, cost, now)};
  }
  return {};
}

Decision LeaseBook::Allowed(const Record& record, BootTime now) const {
  const uint64_t capacity = record.limit->limit.capacity();
  const uint64_t remaining = std::min(capacity, record.leases.left() + record.shared_rest);
  return {.allowed = true,
          .limit = capacity,
          .remaining = remaining,
          .reset_after = ResetAfter(record, remaining, now)};
}

Decision LeaseBook::Denied(const Record& record, Cost cost, BootTime now) const {
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
Duration LeaseBook::RetryAfter(const Record& record, Cost cost, uint64_t remaining,
                               BootTime now) const {
  const Limit& limit = record.limit->limit;
  const bool is_over = record.retry_at <= now;
  const bool asking = record.asked_number != 0 && record.asked_want > 0;
  BootTime asked_again = std::max(record.retry_at, record.denied_until);
  if (asking) {
    const BootTime answered = record.asked_at + options_.timeout;
    const Duration pause = LongestPauseOf(record) + TurnOf(record, record.asked_want);
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
Duration LeaseBook::WholeAfter(const Record& record, Cost cost, BootTime now) {
  const Limit& limit = record.limit->limit;
  if (!IsWindow(limit)) return std::min(RoundUp(Price(limit, cost)), base::kDurationMax);
  const Duration ends = WindowEndsAfter(record, now);
  if (!IsSlidingCounter(limit)) return ends;
  const base::uint128 part = base::WideMul(std::min(cost, limit.capacity()), limit.period());
  return ends + Duration(static_cast<int64_t>(base::CeilDiv(part, limit.capacity())));
}

// The time to the end of the open window, if the end of this or another window is known.
Duration LeaseBook::WindowEndsAfter(const Record& record, BootTime now) {
  const Limit& limit = record.limit->limit;
  if (IsCalendar(limit)) return std::max(Duration(0), record.reset_at - now);
  const int64_t period = PeriodOf(limit).count();
  const int64_t ahead = (record.reset_at - now).count() % period;
  return Duration(ahead > 0 ? ahead : ahead + period);
}

// An estimate, like `remaining`: what others hold is not known here.
Duration LeaseBook::ResetAfter(const Record& record, uint64_t remaining, BootTime now) const {
  const Limit& limit = record.limit->limit;
  if (!IsWindow(limit)) return RoundUp(Price(limit, limit.capacity() - remaining));
  return record.reset_at > now ? record.reset_at - now : WindowEndsAfter(record, now);
}

}  // namespace headgate::limiter
