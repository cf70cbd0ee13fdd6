#include "headgate/limiter/shared/local_decisions.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/base/wide.h"

namespace headgate::limiter::shared {

using algorithm::Decision;
using store::Operation;
using store::TakeRequest;

namespace {

// Debts to check at a time for having been paid by time.
constexpr size_t kDebtsLookedAt = 256;

// Errors after which the store has certainly not executed the call.
bool IsNotDone(const absl::Status& status) {
  return status.code() != absl::StatusCode::kDeadlineExceeded &&
         status.code() != absl::StatusCode::kAborted &&
         status.code() != absl::StatusCode::kUnimplemented;
}

}  // namespace

// Nothing is owed to a damaged bucket, because it can only begin as never used.
Owed OwedAfter(const absl::Status& why) {
  return IsNotDone(why) && !absl::IsDataLoss(why) ? Owed::kYes : Owed::kNo;
}

NoAnswer NoAnswerOf(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kResourceExhausted:
      return NoAnswer::kBusy;
    case absl::StatusCode::kCancelled:
      return NoAnswer::kLocked;
    case absl::StatusCode::kPermissionDenied:
      return NoAnswer::kRefused;
    case absl::StatusCode::kDataLoss:
      return NoAnswer::kDamaged;
    case absl::StatusCode::kOutOfRange:
      return NoAnswer::kNotStorable;
    default:
      return NoAnswer::kUnreachable;
  }
}

LocalDecisions::LocalDecisions(store::SharedStore& shared, store::Store& local, SharedRests& rests,
                               lease::LeaseBooks* leases, const Instants& instants,
                               base::Duration timeout)
    : shared_(shared),
      local_(local),
      rests_(rests),
      leases_(leases),
      instants_(instants),
      timeout_(timeout),
      shares_(local.limits()) {}

Settled LocalDecisions::Decide(const Member& member, std::string_view name, const absl::Status& why,
                               Owed owed) {
  const algorithm::Limit& limit = member.limit->limit;
  // A refund, undo or reset was not confirmed: the caller has to know. The same if the store
  // rejects the call as invalid: this is a bug, not an outage, and should not be hidden.
  const bool decides = AsksToPass(member.operation) || member.operation == Operation::kCharge;
  if (!decides || absl::IsUnimplemented(why) ||
      member.terms.on_store_failure == rule::OnStoreFailure::kDeny) {
    return {Decision{.allowed = false, .limit = limit.capacity()}, Mode::kClosed};
  }
  if (member.terms.on_store_failure == rule::OnStoreFailure::kAllow) {
    // Nothing is counted, so nothing is used up: a client that paces itself can go on.
    return {Decision{.allowed = true, .limit = limit.capacity(), .remaining = limit.capacity()},
            Mode::kOpen};
  }
  return {DecideByShare(member, name, owed), Mode::kLocal};
}

Decision LocalDecisions::DecideByShare(const Member& member, std::string_view name, Owed owed) {
  // Decided as of now, not of its arrival: requests that waited for the store and requests that
  // come now share one local share.
  const base::BootTime boot_now = shared_.Now();
  const base::Instant now = instants_.At(boot_now);
  const store::LimitHandle share = ShareOf(member);
  TakeRequest request{
      .key = member.key, .limit = share.get(), .cost = 0, .operation = Operation::kPeek};
  Decision decision;
  const bool is_queue = IsQueue(member.limit->limit.algorithm());
  if (const auto rest = rests_.Take(member.key, boot_now); rest && !is_queue) {
    // The local bucket begins with at most this share of the last known rest.
    const uint64_t capacity = std::max<uint64_t>(1, member.limit->limit.capacity());
    const auto left = static_cast<uint64_t>(
        base::WideMul(share->limit.capacity(), std::min(rest->remaining, capacity)) / capacity);
    UseUp(request, left, now, instants_.At(rest->full_at));
  }
  request.cost = member.cost;
  request.operation = member.operation;
  request.taken_at = member.taken.decision.at;
  local_.TakeOne(request, decision, now);
  const bool took = member.operation == Operation::kCharge ||
                    (member.operation == Operation::kTake && decision.allowed);
  if (took && owed == Owed::kYes) {
    if (debts_.empty()) settle_pace_.OnAway(boot_now);
    debts_.Add(member.key, name, member.limit, member.history, share->limit, member.cost, now);
  } else if (member.operation == Operation::kUndo && !member.taken.perhaps_done) {
    debts_.Undo(member.key, member.cost, member.taken.decision.at, now);
  }
  return decision;
}

// Leaves at most `left` in the local bucket of a request that peeks. The missing requests were used
// at some time, which decides when they are there again:
//
//   sliding log          evenly over the last period
//   sliding counter      evenly: as much in the window before this one, and the rest in this one
//   from the first hit   when the window began, which ends at `full_at`
//   otherwise            now: a bucket refills at its rate, and the epoch ends a window
void LocalDecisions::UseUp(TakeRequest request, uint64_t left, base::Instant now,
                           base::Instant full_at) {
  constexpr int64_t kSteps = 16;
  const algorithm::LimitSpec& spec = request.limit->limit.spec();
  Decision decision;
  const auto missing = [&] {
    request.operation = Operation::kPeek;
    request.cost = 0;
    local_.TakeOne(request, decision, now);
    return decision.remaining - std::min(decision.remaining, left);
  };
  const auto use = [&](uint64_t cost, base::Instant at) {
    if (cost == 0) return;
    request.operation = Operation::kTake;
    request.cost = cost;
    local_.TakeOne(request, decision, at);
  };
  const uint64_t all = missing();
  if (KeepsHits(spec.algorithm)) {
    const auto part = [&](int64_t step) {
      return static_cast<uint64_t>(base::WideMul(all, static_cast<uint64_t>(step)) / kSteps);
    };
    for (int64_t step = 1; step <= kSteps; ++step)
      use(part(step) - part(step - 1), now - spec.period / kSteps * (kSteps - step));
  } else if (spec.algorithm == algorithm::Algorithm::kSlidingWindowCounter) {
    use(all, now - base::Duration(now.ns % spec.period.count() + 1));
  } else if (spec.align == algorithm::Align::kFirstHit) {
    use(all, std::min(now, full_at - spec.period));
  }
  use(missing(), now);
}

void LocalDecisions::OnAnswer(const base::Hash128& key, uint64_t remaining,
                              base::Duration full_after, base::Instant at) {
  settle_pace_.OnAnswer();
  NoteRest(key, remaining, full_after, at);
}

void LocalDecisions::NoteRest(const base::Hash128& key, uint64_t remaining,
                              base::Duration full_after, base::Instant at) {
  const base::BootTime now = shared_.Now();
  rests_.OnAnswer(key, {.remaining = remaining,
                        .full_at = now + std::min(full_after, base::kDurationMax / 2),
                        .at = at,
                        .heard_at = now});
}

base::BootTime LocalDecisions::next_settlement() const {
  return debts_.empty() ? base::BootTime{INT64_MAX} : settle_pace_.next();
}

store::LimitHandle LocalDecisions::ShareOf(const Member& member) {
  const uint32_t ppm = member.terms.fallback_share_ppm;
  return shares_.Of(member.limit, ppm != 0 ? Fraction{ppm, kWholePpm}
                                           : Fraction{1, std::max(1u, shared_.instances())});
}

void LocalDecisions::SettleDebts() {
  const base::BootTime now = shared_.Now();
  if (debts_.empty() || now < settle_pace_.next()) return;
  debts_.DropPaid(kDebtsLookedAt, instants_.At(now));
  while (settle_pace_.Take(now)) {
    std::optional<Debts::Debt> debt = debts_.Take(instants_.At(now));
    if (!debt) return;
    const algorithm::Cost cost = Debts::AmountOf(*debt, instants_.At(now));
    Charge(*std::move(debt), cost);
  }
}

// The bucket may be overdrawn by it: others may have taken since what this instance let through. A
// call that may have been executed counts as executed, so that no debt is charged twice.
void LocalDecisions::Charge(Debts::Debt debt, algorithm::Cost cost) {
  const store::SharedRequest request{
      .name = debt.name,
      .limit = debt.limit,
      .cost = cost,
      .operation = Operation::kCharge,
      .leased = leases_ != nullptr && algorithm::CanLease(debt.limit->limit),
      .keeps_limit = true,
      .timeout = timeout_,
      .history = debt.history.changes(),
      .now = instants_.Now()};
  // The store may use the name until Ask returns, and may answer before that.
  auto kept = std::make_shared<Debts::Debt>(debt);  // its history is that of `debt`
  shared_.Ask(request, [this, kept, cost](const store::SharedAnswer& answer) {
    if (absl::IsDataLoss(answer.status)) return;  // the debt is forgotten: OwedAfter
    if (!answer.status.ok()) {
      settle_pace_.OnAway(shared_.Now());
      if (IsNotDone(answer.status)) return debts_.PutBack(std::move(*kept), instants_.Now());
    } else {
      const algorithm::Decision& decision = answer.decision;
      NoteRest(kept->key, decision.remaining, decision.reset_after, decision.at);
      if (leases_ != nullptr && decision.overdrawn) leases_->OnOverdrawn(kept->key, shared_.Now());
    }
    debts_.counters().settled.Add(cost);
  });
}

}  // namespace headgate::limiter::shared
