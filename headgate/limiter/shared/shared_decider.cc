#include "headgate/limiter/shared/shared_decider.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/check.h"

namespace headgate::limiter::shared {

using algorithm::Decision;
using lease::KeptHistory;
using lease::LeaseAction;
using lease::LeaseBook;
using lease::LeaseDenials;
using lease::LeaseMessage;
using lease::LeaseVerdict;
using store::Operation;
using store::TakeRequest;

SharedDecider::SharedDecider(store::SharedStore& shared, store::Store& local,
                             const SharedDeciderOptions& options)
    : Decider({.on_store_failure = options.on_store_failure, .sharing = options.sharing}),
      shared_(shared),
      options_(options),
      leases_(options.leases),
      own_rests_(options.rests == nullptr ? std::make_unique<SharedRests>() : nullptr),
      rests_(options.rests != nullptr ? *options.rests : *own_rests_),
      own_permits_(options.permits == nullptr ? std::make_unique<permit::PermitTable>() : nullptr),
      instants_(shared),
      permits_(shared, options.permits != nullptr ? *options.permits : *own_permits_, instants_,
               options.timeout, [this](Mode mode) { Count(mode); }),
      local_(shared, local, rests_, leases_, instants_, options.timeout) {
  permit_source()->decider = this;
}

bool SharedDecider::Decide(std::span<BatchEntry> batch, Namer name, Pending* pending,
                           base::Instant now) {
  const State& state = pending->state();
  HEADGATE_DCHECK(state->open == 0);
  const size_t first = state->settled.size();
  bool asks = false;
  // If one request cannot be settled at once, this and all later ones are settled in `state`.
  const auto begin_asking = [&](size_t i) {
    if (std::exchange(asks, true)) return;
    state->settled.resize(first + batch.size());
    for (size_t k = 0; k < i; ++k) state->settled[first + k] = batch[k].settled;
    state->open = 1;  // keeps on_ready from being called while this function asks
  };
  const base::BootTime boot_now = shared_.Now();
  instants_.Follow(now);
  if (leases_ != nullptr && batch.size() > 1) Prefetch(batch);
  for (size_t i = 0; i < batch.size();) {
    size_t end = i + 1;
    while (end < batch.size() && batch[end].request.joined != store::Joined::kNo) ++end;
    if (end > i + 1) {
      begin_asking(i);
      ++state->open;
      AskGroup(
          batch.subspan(i, end - i), [&](size_t k, std::string& out) { name(i + k, out); }, now,
          state, first + i);
      i = end;
      continue;
    }
    const auto name_it = [&](std::string& out) { name(i, out); };
    Await await;
    Settled& here = asks ? state->settled[first + i] : batch[i].settled;
    if (!SettleHere(batch[i].request, batch[i].terms, name_it, boot_now, here, await)) {
      begin_asking(i);
      ++state->open;
      Ask(MemberOf(batch[i], now), name_it, await, {.state = state, .index = first + i});
    }
    ++i;
  }
  if (!asks) return true;
  if (--state->open > 0) return false;
  for (size_t k = 0; k < batch.size(); ++k) batch[k].settled = state->settled[first + k];
  state->settled.resize(first);
  return true;
}

void SharedDecider::Prefetch(std::span<const BatchEntry> batch) const {
  for (const BatchEntry& entry : batch) leases_->PrefetchSet(entry.request.key);
  for (const BatchEntry& entry : batch) leases_->PrefetchRecord(entry.request.key);
}

Member SharedDecider::MemberOf(const BatchEntry& entry, base::Instant now) {
  const TakeRequest& request = entry.request;
  Settled taken;
  if (request.operation == Operation::kUndo) {
    taken = entry.settled;
    taken.decision.at = request.taken_at;
  }
  return {.key = request.key,
          .limit = store::LimitHandle::Pin(*request.limit),
          .cost = request.cost,
          .operation = request.operation,
          .terms = entry.terms,
          .now = now,
          .history = request.history,
          .joined = request.joined,
          .taken = taken};
}

TakeRequest SharedDecider::TakeOf(const Member& member) {
  return {.key = member.key,
          .limit = member.limit.get(),
          .history = member.history,
          .cost = member.cost,
          .operation = member.operation,
          .taken_at = member.taken.decision.at};
}

store::SharedRequest SharedDecider::RequestOf(const Member& member, std::string_view name) const {
  return {.name = name,
          .limit = member.limit,
          .cost = member.cost,
          .operation = member.operation,
          .taken_at = member.taken.decision.at,
          .leased = IsLeased(*member.limit, member.terms),
          .locked = member.terms.sharing == rule::Sharing::kLocked,
          .timeout = options_.timeout,
          .history = member.history,
          .now = member.now};
}

bool SharedDecider::IsLeased(const store::LimitEntry& limit, const SharedTerms& terms) const {
  return leases_ != nullptr && terms.sharing == rule::Sharing::kLeased &&
         algorithm::CanLease(limit.limit);
}

bool SharedDecider::IsDeniedHere(const Member& member) const {
  return member.operation == Operation::kTake && IsLeased(*member.limit, member.terms) &&
         leases_->IsDenied(member.key, *member.limit, member.cost, shared_.Now());
}

bool SharedDecider::SettleHere(const TakeRequest& request, const SharedTerms& terms,
                               LeaseBook::Namer name, base::BootTime boot_now, Settled& settled,
                               Await& await) {
  const algorithm::Limit& limit = request.limit->limit;
  if (limit.denies_all() && request.operation != Operation::kReset) {
    // The answer is known without the store, and the bucket stays unchanged.
    const bool asks =
        request.operation == Operation::kTake || request.operation == Operation::kPeek;
    Count(Mode::kExact);
    settled = {algorithm::DenyAll(limit, asks ? request.cost : 0), Mode::kExact};
    return true;
  }
  const bool takes = request.operation == Operation::kTake;
  if ((!takes && request.operation != Operation::kPeek) || request.cost == 0 ||
      !IsLeased(*request.limit, terms))
    return false;
  if (!takes) {
    const auto found = leases_->Peek(request.key, *request.limit, request.cost, boot_now);
    if (!found) return false;
    Count(Mode::kLeased);
    settled = {*found, Mode::kLeased};
    return true;
  }
  LeaseMessage* message = nullptr;
  const LeaseVerdict verdict =
      leases_->Take(request.key, *request.limit, request.cost, name, boot_now,
                    [&](const LeaseAction& action) { message = &Kept(action); });
  if (message != nullptr) {
    message->history = KeptHistory::Of(request.history);
    message->now = instants_.At(boot_now);
  }
  if (verdict.kind == LeaseVerdict::Kind::kAwait) {
    await = {.message = message, .joins = message == nullptr, .beside = verdict.decision};
    if (message == nullptr && verdict.decision.limit > 0 && !waiting_.contains(request.key)) {
      Count(Mode::kLeased);
      settled = {verdict.decision, Mode::kLeased};
      return true;
    }
    return false;
  }
  if (message != nullptr) Send(*message);
  if (verdict.kind == LeaseVerdict::Kind::kAskStore) return false;
  Count(Mode::kLeased);
  settled = {.decision = verdict.decision,
             .mode = Mode::kLeased,
             .lease = verdict.lease,
             .spent_at = boot_now};
  return true;
}

void SharedDecider::Receiver::operator()(const Settled& settled) const {
  if (goes_on) return goes_on(settled);
  state->settled[index] = settled;
  state->Close();
}

void SharedDecider::Ask(Member member, LeaseBook::Namer name, const Await& await,
                        Receiver receiver) {
  if (member.operation == Operation::kReset && IsLeased(*member.limit, member.terms))
    leases_->OnReset(member.key);
  PendingDecision& pending = pending_.Take();
  pending.member = std::move(member);
  pending.receiver = std::move(receiver);
  pending.denied.reset();
  pending.decided_again = 0;
  pending.partly_done = false;
  if (await.message == nullptr) {
    if (pending.member.operation == Operation::kRefund && RefundHere(pending)) return;
    if (pending.member.operation == Operation::kUndo && UndoHere(pending)) return;
  }
  pending.name.clear();
  name(pending.name);
  if (await.message != nullptr) return Send(*await.message, &pending);
  if (await.joins) return Join(pending, await.beside);
  AskStore(pending);
}

// The request waits for the answer to the message about its key, in the order in which it came. A
// message of another loop of this instance is not waited for: the store is asked beside it.
void SharedDecider::Join(PendingDecision& pending, const Decision& beside) {
  const auto found = waiting_.find(pending.member.key);
  if (found == waiting_.end()) {
    if (beside.limit == 0) return AskStore(pending);
    return pending.denied ? Settle(pending, {*pending.denied, Mode::kExact})
                          : Settle(pending, {beside, Mode::kLeased});
  }
  found->second->others.push_back(&pending);
}

// The store counts leased requests as taken until they are reported, and refunds none of them. So a
// refund goes first to the leases that this instance has spent from.
bool SharedDecider::RefundHere(PendingDecision& pending) {
  Member& member = pending.member;
  if (!IsLeased(*member.limit, member.terms) || member.cost == 0) return false;
  Decision decision;
  const algorithm::Cost refunded =
      leases_->Refund(member.key, *member.limit, member.cost, decision, shared_.Now());
  member.cost -= refunded;
  pending.partly_done = refunded > 0;
  if (member.cost > 0) return false;
  Settle(pending, {decision, Mode::kLeased});
  return true;
}

base::Instant SharedDecider::TakenAt(const BatchEntry& entry) const {
  if (entry.settled.lease == 0) return entry.settled.decision.at;
  return rests_.StoreTimeAt(entry.request.key, entry.settled.spent_at).value_or(base::Instant{0});
}

void SharedDecider::BecomeUndo(Member& member, const Settled& taken) const {
  member.operation = Operation::kUndo;
  member.taken = taken;
}

// The part that goes back into the leases that gave it is in the bucket as before. The rest is
// undone at the store, at the time of its clock; if that is not known, the rest stays consumed.
void SharedDecider::UndoFromLeases(Member& member) {
  const Settled& taken = member.taken;
  if (taken.lease == 0 || leases_ == nullptr) return;
  member.cost -= leases_->GiveBack(member.key, member.cost, taken.lease, shared_.Now());
  if (member.cost == 0) return;
  const auto at = rests_.StoreTimeAt(member.key, taken.spent_at);
  if (!at) member.cost = 0;
  member.taken.decision.at = at.value_or(base::Instant{0});
}

bool SharedDecider::UndoHere(PendingDecision& pending) {
  Member& member = pending.member;
  if (member.taken.mode == Mode::kLocal) {
    pending.name.clear();
    Settle(pending, {local_.DecideByShare(member, pending.name), Mode::kLocal});
    return true;
  }
  Settled settled = member.taken;
  if (!IsDegraded(settled.mode)) {
    if (settled.lease == 0) return false;
    UndoFromLeases(member);
    if (member.cost > 0) return false;
    const auto left = leases_->Peek(member.key, *member.limit, 0, shared_.Now());
    if (left) settled.decision = *left;
  }
  Settle(pending, settled);
  return true;
}

void SharedDecider::AskStore(PendingDecision& pending) {
  const Member& member = pending.member;
  pending.held = HeldFor(member);
  store::SharedRequest request = RequestOf(member, pending.name);
  // Without a lease and without a report: the answer says what others hold, too.
  if (member.takes() && IsLeased(*member.limit, member.terms))
    request.lease = store::LeaseAsk{.id = {.node = leases_->node()}, .cost = member.cost};
  shared_.Ask(request,
              [this, &pending](const store::SharedAnswer& answer) { OnAnswered(pending, answer); });
}

void SharedDecider::OnAnswered(PendingDecision& pending, const store::SharedAnswer& answer) {
  const Member& member = pending.member;
  if (!answer.status.ok()) return SettleWithout(pending, answer.status, OwedAfter(answer.status));
  OnAnswer(member, answer.decision);
  if (member.takes() && IsLeased(*member.limit, member.terms) &&
      !leases_->OnExact(member.key, *member.limit, member.cost, answer, shared_.Now()) &&
      pending.decided_again < kDecidedAgainMost) {
    pending.denied = ToldOf(member, answer.decision, 0);
    return DecideAgain(pending);
  }
  Settle(pending, {ToldOf(member, answer.decision, pending.held), Mode::kExact});
}

void SharedDecider::OnMessageAnswered(Waiting& waiting, const store::SharedAnswer& answer) {
  // Freed before anybody is told, because they may ask again at once.
  PendingDecision* const asker = std::exchange(waiting.asker, nullptr);
  const std::vector<PendingDecision*> others = std::exchange(waiting.others, {});
  waitings_.Release(waiting);
  if (asker != nullptr) {
    const Member& member = asker->member;
    if (answer.status.ok()) {
      // The lease that was granted with the answer remains, too.
      const algorithm::Limit& limit = member.limit->limit;
      Decision told =
          answer.decision.allowed
              ? LeaseDenials::WithHeld(limit, member.cost, answer.decision,
                                       leases_->Spendable(member.key, *member.limit, shared_.Now()))
              : ToldOf(member, answer.decision, 0);
      told.at = algorithm::TakenAt(limit, answer.grant, leases_->ttl(), answer.decision.at);
      Settle(*asker, {told, Mode::kExact});
    } else {
      SettleWithout(*asker, answer.status, OwedAfter(answer.status));
    }
  }
  for (PendingDecision* const pending : others) {
    pending->receiver.TellResumed();
    if (answer.status.ok()) {
      DecideAgain(*pending);
    } else {
      SettleWithout(*pending, answer.status, Owed::kYes);
    }
  }
}

// An earlier answer of the store holds if it does not answer any more.
void SharedDecider::SettleWithout(PendingDecision& pending, const absl::Status& why, Owed owed) {
  if (pending.denied) return Settle(pending, {*pending.denied, Mode::kExact});
  Settled settled = local_.Decide(pending.member, pending.name, why, owed);
  settled.perhaps_done = pending.partly_done || (owed == Owed::kNo && !absl::IsDataLoss(why));
  settled.no_answer = NoAnswerOf(why);
  Settle(pending, settled);
}

// The message that the request waited for has been answered. A request that has waited for a few
// asks the store itself, beside all others: if each waited for each, a crowd would take its time
// squared.
void SharedDecider::DecideAgain(PendingDecision& pending) {
  const Member& member = pending.member;
  ++pending.decided_again;
  LeaseMessage* message = nullptr;
  const LeaseVerdict verdict = leases_->TakeAgain(
      member.key, *member.limit, member.cost, [&](std::string& out) { out += pending.name; },
      shared_.Now(), [&](const LeaseAction& action) { message = &Kept(action); });
  if (message != nullptr) {
    message->history = KeptHistory::Of(member.history);
    message->now = instants_.Now();
  }
  switch (verdict.kind) {
    case LeaseVerdict::Kind::kAllowed:
    case LeaseVerdict::Kind::kDenied:
      if (message != nullptr) Send(*message);
      return Settle(pending, {.decision = verdict.decision,
                              .mode = pending.denied ? Mode::kExact : Mode::kLeased,
                              .lease = verdict.lease,
                              .spent_at = shared_.Now()});
    case LeaseVerdict::Kind::kAwait:
      if (message != nullptr) return Send(*message, &pending);
      return pending.decided_again < kDecidedAgainMost ? Join(pending, verdict.decision)
                                                       : AskStore(pending);
    case LeaseVerdict::Kind::kAskStore:
      return AskStore(pending);
  }
}

void SharedDecider::Settle(PendingDecision& pending, const Settled& settled) {
  Count(settled.mode);
  // Freed before the caller is told, because the caller may ask again at once.
  const Receiver receiver = std::exchange(pending.receiver, {});
  pending.member.limit = {};
  pending_.Release(pending);
  receiver(settled);
}

void SharedDecider::OnAnswer(const Member& member, const Decision& decision) {
  local_.OnAnswer(member.key, decision.remaining, decision.reset_after, decision.at);
  if (!IsLeased(*member.limit, member.terms)) return;
  if (GivesBack(member.operation)) leases_->OnRefunded(member.key, decision.remaining);
  if (member.operation == Operation::kCharge && decision.overdrawn)
    leases_->OnOverdrawn(member.key, shared_.Now());
}

uint64_t SharedDecider::HeldFor(const Member& member) {
  if (member.takes() || !IsLeased(*member.limit, member.terms)) return 0;
  return leases_->Spendable(member.key, *member.limit, shared_.Now());
}

Decision SharedDecider::ToldOf(const Member& member, const Decision& decision, uint64_t held) {
  if (member.operation == Operation::kReset || !IsLeased(*member.limit, member.terms))
    return decision;
  Decision told = decision;
  if (!member.takes()) {
    // The store may have counted a grant after it has answered, and a request that was spent since
    // is gone.
    told = LeaseDenials::WithHeld(member.limit->limit, member.cost, decision,
                                  std::min(held, HeldFor(member)));
  }
  if (told.allowed) return told;
  told.retry_after =
      std::max(told.retry_after, leases_->DeniedFor(member.key, *member.limit, shared_.Now()));
  return told;
}

LeaseMessage& SharedDecider::Kept(const LeaseAction& action) {
  LeaseMessage& message = messages_.Take();
  message.Keep(action);
  return message;
}

void SharedDecider::Send(LeaseMessage& message, PendingDecision* asker) {
  ++lease_messages_;
  const bool only_returns = message.ask.want == 0 && message.ask.cost == 0;
  Waiting& waiting = waitings_.Take();
  waiting.asker = asker;
  waiting_[message.key] = &waiting;
  // The store reads the history until it has answered.
  shared_.Ask(
      {.name = message.name,
       .limit = message.limit,
       .lease = message.ask,
       .leased = true,
       .timeout = returns_ ? returns_->pace.timeout() : options_.timeout,
       .history = message.history.changes(),
       .now = message.now},
      [this, history = message.history, key = message.key, limit = message.limit,
       number = message.ask.id.number, only_returns, &waiting](const store::SharedAnswer& answer) {
        --lease_messages_;
        if (answer.status.ok()) {
          const uint64_t remaining = answer.decision.remaining;
          local_.OnAnswer(key, remaining, FullAfter(*limit, remaining), answer.decision.at);
        }
        const auto last = waiting_.find(key);
        if (last != waiting_.end() && last->second == &waiting) waiting_.erase(last);
        LeaseMessage* next = nullptr;
        leases_->OnGrant(key, number, answer, shared_.Now(),
                         [&](const LeaseAction& action) { next = &Kept(action); });
        if (next != nullptr) Send(*next);
        OnMessageAnswered(waiting, answer);
        if (returns_) OnReturned(only_returns, answer.status.ok());
      });
  message.limit = {};
  message.history = {};
  messages_.Release(message);
}

// The reset time of a bucket that was just used for the first time; a window may end sooner if it
// was used before.
base::Duration SharedDecider::FullAfter(const store::LimitEntry& limit, uint64_t remaining) const {
  algorithm::NoHits no_hits;
  algorithm::BucketState state;
  const uint64_t missing = limit.limit.capacity() - std::min(limit.limit.capacity(), remaining);
  return algorithm::Decide(limit.limit, state, no_hits, missing, instants_.Now()).reset_after;
}

void SharedDecider::SendOutbox() {
  for (LeaseMessage* message : outbox_) Send(*message);
  outbox_.clear();
}

bool SharedDecider::Increment(const CountRequest& request, PendingCounts& counts,
                              base::Instant /*now*/) {
  return counts.Ask([&](PendingCounts::Done done) {
    shared_.Increment({.name = request.name, .change = request.change, .timeout = options_.timeout},
                      std::move(done));
  });
}

bool SharedDecider::AskPermits(std::span<PermitEntry> batch, Namer name, Pending* pending,
                               base::Instant now) {
  instants_.Follow(now);
  return permits_.Ask(batch, name, pending, permit_source(), now);
}

void SharedDecider::OnTime() {
  if (returns_) return SendReturns();
  const auto keep = [this](const LeaseAction& action) { outbox_.push_back(&Kept(action)); };
  for (bool done = leases_ == nullptr; !done; SendOutbox()) {
    done = leases_->OnTime(options_.loop, options_.loops, shared_.Now(), keep);
  }
  local_.SettleDebts();
}

base::BootTime SharedDecider::next_wake() const {
  if (returns_)
    return returns_->done != nullptr ? returns_->pace.wake_at(returns_->has_more)
                                     : base::BootTime{INT64_MAX};
  const base::BootTime debts = local_.next_settlement();
  return leases_ != nullptr ? std::min(leases_->next_wake(options_.loop, options_.loops), debts)
                            : debts;
}

void SharedDecider::Count(Mode mode) {
  // One thread writes.
  std::atomic<uint64_t>& count = decisions_[static_cast<size_t>(mode)];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace headgate::limiter::shared
