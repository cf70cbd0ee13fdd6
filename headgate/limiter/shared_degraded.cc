// Decisions without the shared store, and how their admissions are later taken from the store.
#include <algorithm>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/shared_decider.h"

namespace headgate::limiter {

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

SharedDecider::Owed SharedDecider::OwedAfter(const absl::Status& why) {
  return IsNotDone(why) ? Owed::kYes : Owed::kNo;
}

Settled SharedDecider::Degraded(const Member& member, std::string_view name,
                                const absl::Status& why, Owed owed) {
  const bool asks = member.operation == Operation::kTake || member.operation == Operation::kPeek;
  const algorithm::Limit& limit = member.limit->limit;
  // A refund or reset was not executed: the caller has to know. The same if the store rejects the
  // call as invalid: this is a bug, not an outage, and should not be hidden.
  if (!asks || absl::IsUnimplemented(why) ||
      member.terms.on_store_failure == rule::OnStoreFailure::kDeny) {
    return {Decision{.allowed = false, .limit = limit.capacity()}, Mode::kClosed};
  }
  if (member.terms.on_store_failure == rule::OnStoreFailure::kAllow) {
    // Nothing is counted, so nothing is used up: a client that paces itself can go on.
    return {Decision{.allowed = true, .limit = limit.capacity(), .remaining = limit.capacity()},
            Mode::kOpen};
  }
  return {DecideLocally(member, name, owed), Mode::kLocal};
}

Decision SharedDecider::DecideLocally(const Member& member, std::string_view name, Owed owed) {
  // Decided as of now, not of its arrival: requests that waited for the store and requests that
  // come now share one local share.
  const base::BootTime boot_now = shared_.Now();
  const base::Instant now = InstantAt(boot_now);
  const store::LimitHandle share = ShareOf(member);
  TakeRequest request{
      .key = member.key, .limit = share.get(), .cost = 0, .operation = Operation::kPeek};
  Decision decision;
  const bool is_queue = member.limit->limit.algorithm() == algorithm::Algorithm::kLeakyBucketQueue;
  if (const auto rest = rests_.Take(member.key, boot_now); rest && !is_queue) {
    // The local bucket begins with at most this share of the last known rest.
    local_.TakeOne(request, decision, now);
    const uint64_t capacity = std::max<uint64_t>(1, member.limit->limit.capacity());
    const auto left = static_cast<uint64_t>(
        base::WideMul(share->limit.capacity(), std::min(*rest, capacity)) / capacity);
    if (decision.remaining > left) {
      request.cost = decision.remaining - left;
      request.operation = Operation::kTake;
      local_.TakeOne(request, decision, now);
    }
  }
  request.cost = member.cost;
  request.operation = member.operation;
  local_.TakeOne(request, decision, now);
  if (member.operation == Operation::kTake && decision.allowed && owed == Owed::kYes) {
    if (debts_.empty()) settle_pace_.OnAway(boot_now);
    debts_.Add(member.key, name, member.limit, member.history, share->limit, member.cost, now);
  } else if (member.operation == Operation::kRefund) {
    debts_.GiveBack(member.key, member.cost, now);
  }
  return decision;
}

void SharedDecider::NoteRest(const base::Hash128& key, uint64_t remaining,
                             base::Duration full_after) {
  rests_.OnAnswer(key, remaining, shared_.Now() + std::min(full_after, base::kDurationMax / 2));
}

// The reset time of a bucket that was just used for the first time; a window may end sooner if it
// was used before.
base::Duration SharedDecider::FullAfter(const store::LimitEntry& limit, uint64_t remaining) const {
  algorithm::NoHits no_hits;
  algorithm::BucketState state;
  const uint64_t missing = limit.limit.capacity() - std::min(limit.limit.capacity(), remaining);
  return algorithm::Decide(limit.limit, state, no_hits, missing, InstantAt(shared_.Now()))
      .reset_after;
}

store::LimitHandle SharedDecider::ShareOf(const Member& member) {
  const uint32_t ppm = member.terms.fallback_share_ppm;
  return shares_.Of(member.limit, ppm != 0 ? Fraction{ppm, kWholePpm}
                                           : Fraction{1, std::max(1u, shared_.instances())});
}

void SharedDecider::SettleDebts() {
  const base::BootTime now = shared_.Now();
  if (debts_.empty() || now < settle_pace_.next()) return;
  debts_.DropPaid(kDebtsLookedAt, InstantAt(now));
  while (settle_pace_.Take(now)) {
    std::optional<Debts::Debt> debt = debts_.Take(InstantAt(now));
    if (!debt) return;
    const algorithm::Cost cost = Debts::AmountOf(*debt, InstantAt(now));
    Settle(*std::move(debt), cost);
  }
}

// Takes the whole debt, or in a second call the rest of the bucket: requests taken by others in the
// meantime are forgiven. A call that may have been executed counts as executed, so that no debt is
// taken twice.
void SharedDecider::Settle(Debts::Debt debt, algorithm::Cost cost) {
  const store::SharedRequest request{
      .name = debt.name,
      .limit = debt.limit,
      .cost = cost,
      .operation = Operation::kTake,
      .leased = leases_ != nullptr && algorithm::CanLease(debt.limit->limit),
      .keeps_limit = true,
      .timeout = options_.timeout,
      .history = debt.history.changes(),
      .now = InstantAt(shared_.Now())};
  // The store may use the name until Ask returns, and may answer before that.
  auto kept = std::make_shared<Debts::Debt>(debt);  // its history is that of `debt`
  shared_.Ask(request, [this, kept, cost](const store::SharedAnswer& answer) {
    Debts::Counters& counters = debts_.counters();
    if (!answer.status.ok()) {
      settle_pace_.OnAway(shared_.Now());
      if (IsNotDone(answer.status))
        return debts_.PutBack(std::move(*kept), InstantAt(shared_.Now()));
      return counters.settled.Add(cost);
    }
    const algorithm::Decision& decision = answer.decision;
    NoteRest(kept->key, decision.remaining, decision.reset_after);
    if (decision.allowed) return counters.settled.Add(cost);
    const algorithm::Cost left = std::min(cost, decision.remaining);
    counters.forgiven.Add(cost - left);
    // A limit that counts denied requests has counted this request.
    if (left == 0 || left == cost || kept->limit->limit.spec().count_denied)
      return counters.settled.Add(left);
    Settle(std::move(*kept), left);
  });
}

}  // namespace headgate::limiter
