#include "tests/simulation/node.h"

#include <sstream>

#include <fmt/format.h>

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using limiter::HeldLease;
using limiter::HeldLeases;
using limiter::LeaseAction;
using limiter::LeaseVerdict;
using store::LeaseAsk;
using store::LeaseGrant;
using store::LeaseReport;
using store::SharedAnswer;
using store::redis::BucketCall;

namespace {

// As the book's options say.
constexpr int64_t kMarginPercent = 5;

std::string Text(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

limiter::LeaseBookOptions OptionsOf(const Plan& plan, uint64_t id) {
  return {.node = id, .keys_max = 8, .ttl = plan.ttl, .timeout = std::min(plan.timeout, plan.ttl / 16)};
}

}  // namespace

Node::Node(NodeHost& host, const Plan& plan, std::optional<Mutant> mutant, Coverage& coverage, const NodeStart& start,
           std::vector<store::LimitHandle> limits)
    : host_(host),
      plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      index_(start.index),
      options_(OptionsOf(plan, start.id)),
      book_(options_),
      epoch_(start.epoch),
      was_connected_(start.epoch.has_value()) {
  for (store::LimitHandle& limit : limits) keys_.emplace_back().limit = std::move(limit);
}

std::string Node::NameOf(size_t key) { return fmt::format("k{}", key); }

bool Node::holds_leases() const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    const HeldLeases* held = book_.Held(HashOf(i));
    if (held != nullptr && !held->empty()) return true;
  }
  return false;
}

uint64_t Node::held(size_t key) const {
  const HeldLeases* held = book_.Held(HashOf(key));
  return held != nullptr ? held->left() : 0;
}

std::optional<BootTime> Node::DeadlineOf(size_t key, uint64_t number) const {
  const HeldLeases* held = book_.Held(HashOf(key));
  if (held == nullptr) return std::nullopt;
  for (const HeldLease& lease : *held) {
    if (lease.number == number && !lease.closed) return lease.deadline;
  }
  return std::nullopt;
}

void Node::OnConnected(uint64_t epoch, BootTime now) {
  if (was_connected_) epoch_changed_until_ = now + plan_.ttl;
  was_connected_ = true;
  epoch_ = epoch;
}

Duration Node::Life(Duration ttl) const { return ttl - Duration((ttl.count() * kMarginPercent + 99) / 100); }

// ---- Requests

void Node::OnRequest(size_t index, uint64_t cost, BootTime now) {
  Key& key = keys_[index];
  if (key.denied_for_ever) return;
  const bool held = book_.Held(HashOf(index)) != nullptr && !book_.Held(HashOf(index))->empty();
  const uint64_t lost = book_.counters().expired_unspent;
  const LeaseVerdict verdict = book_.Take(
      HashOf(index), *key.limit, cost, [&](std::string& name) { name = NameOf(index); }, now);
  if (host_.tracing()) host_.Say(*this, fmt::format("k{} ×{}: {}", index, cost, Text(verdict)));
  if (book_.counters().expired_unspent > lost) coverage_.Mark("a lease expired on its node with something left");
  if (verdict.action != nullptr) {
    if (verdict.kind == LeaseVerdict::Kind::kDenied) coverage_.Mark("an exhausted bucket was asked again");
    if (verdict.kind == LeaseVerdict::Kind::kAllowed && held) {
      coverage_.Mark("a lease was renewed before it was used up");
    }
  }
  if (verdict.kind == LeaseVerdict::Kind::kAwaitLease) key.awaiting[verdict.action->ask.id.number] = cost;
  Follow(index, cost, verdict, now);
  Wake();
}

// Does what the book says of a request.
void Node::Follow(size_t index, uint64_t cost, const LeaseVerdict& verdict, BootTime now) {
  Key& key = keys_[index];
  CheckSpent(index, verdict.kind == LeaseVerdict::Kind::kAllowed ? cost : 0, now);
  if (verdict.action != nullptr) SendAsk(index, *verdict.action, now);
  switch (verdict.kind) {
    case LeaseVerdict::Kind::kAwaitLease:
      break;
    case LeaseVerdict::Kind::kAllowed:
      ++key.leased;
      host_.Admit(*this, index, cost);
      break;
    case LeaseVerdict::Kind::kDenied:
      coverage_.Mark("a request was denied from memory");
      break;
    case LeaseVerdict::Kind::kAskStore:
      if (key.pot >= cost && now < key.pot_until) {
        key.pot -= cost;
        host_.Admit(*this, index, cost);
      } else {
        SendExact(index, store::Operation::kTake, cost, 0, now);
      }
  }
}

void Node::OnWake(BootTime now) {
  wake_at_ = BootTime{0};
  book_.OnTime(now, [&](const LeaseAction& action) {
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (HashOf(i) == action.key) SendAsk(i, action, now);
    }
  });
  Wake();
}

void Node::Wake() {
  const BootTime next = book_.next_wake();
  if (next.ns == INT64_MAX || wake_at_ == next) return;
  wake_at_ = next;
  host_.At(*this, NodeHost::Timer::kWake, 0, next);
}

// ---- Calls

store::redis::CallContext Node::Context(BootTime now) const {
  return {.epoch = epoch_.value_or(0),
          .epoch_changed = now < epoch_changed_until_ && !Is(Mutant::kEpochNotSeen),
          .lease_ttl = plan_.ttl};
}

store::SharedRequest Node::RequestOf(size_t key, std::string_view name, const store::LimitHandle& limit) const {
  return {.name = name,
          .limit = limit,
          .leased = limiter::LeaseBook::CanLease(keys_[key].limit->limit),
          .timeout = plan_.timeout};
}

// Where it is not connected the rule's failure policy decides, or whoever asked is told so.
void Node::SendExact(size_t index, store::Operation operation, uint64_t cost, uint64_t undoes, BootTime now) {
  if (!connected()) return;
  Key& key = keys_[index];
  const std::string name = NameOf(index);
  store::SharedRequest request = RequestOf(index, name, key.limit);
  request.cost = cost;
  request.operation = operation;
  calls_.try_emplace(++last_call_, Call{.key = index,
                                        .cost = cost,
                                        .number = 0,
                                        .want = 0,
                                        .asked_at = now,
                                        .limit = key.limit,
                                        .content = BucketCall(request, Context(now)),
                                        .fresh = now >= epoch_changed_until_,
                                        .refund = operation == store::Operation::kRefund,
                                        .undoes = undoes});
  Send(last_call_, now);
}

void Node::OnGiveBack(size_t index, uint64_t cost, BootTime now) {
  const uint64_t given = book_.GiveBack(HashOf(index), cost, now);
  if (host_.tracing()) host_.Say(*this, fmt::format("k{} ×{}: {} given back", index, cost, given));
  CheckGivenBack(index, given);
  if (given > 0) {
    coverage_.Mark("a request was taken back into its lease");
    host_.TakeBack(*this, index, given);
  }
  const uint64_t rest = cost - given;
  if (const uint64_t told = Is(Mutant::kGivenBackAndRefunded) ? given : rest; told > 0) {
    SendExact(index, store::Operation::kRefund, told, rest, now);
  }
}

void Node::SendAsk(size_t index, const LeaseAction& action, BootTime now) {
  Key& key = keys_[index];
  key.ledger[action.ask.id.number] = {.asked_at = now};
  // No lease lives that long, nor is one asked for.
  std::erase_if(key.ledger,
                [&](const auto& entry) { return entry.second.asked_at + 2 * plan_.ttl + plan_.timeout < now; });
  CheckReports(index, action.ask, now);
  LeaseAsk ask = action.ask;
  std::vector<LeaseReport> reports(ask.reports.begin(), ask.reports.end());
  for (const LeaseReport& report : reports) {
    if (report.returned) coverage_.Mark("a lease was returned");
  }
  if (mutant_) MutateAsk(key, ask, reports, now);
  if (reports.empty() && ask.want == 0) {
    // A mutant has nothing to say.
    SharedAnswer answer;
    return Granted(index, action.ask.id.number, answer, now);
  }
  ask.reports = reports;
  if (!connected()) {
    coverage_.Mark("an ask could not be sent");
    key.ledger[action.ask.id.number].over = true;
    SharedAnswer answer;
    answer.status = absl::UnavailableError("not connected");
    Granted(index, action.ask.id.number, answer, now);
    return;
  }
  const std::string name = NameOf(index);
  const store::LimitHandle limit = store::LimitHandle::Pin(*action.limit);
  store::SharedRequest request = RequestOf(index, name, limit);
  request.lease = ask;
  request.leased = true;
  calls_.try_emplace(++last_call_, Call{.key = index,
                                        .cost = 0,
                                        .number = ask.id.number,
                                        .want = ask.want,
                                        .asked_at = now,
                                        .limit = limit,
                                        .content = BucketCall(request, Context(now)),
                                        .fresh = now >= epoch_changed_until_});
  Send(last_call_, now);
}

void Node::Send(uint64_t id, BootTime now) {
  const Call& call = calls_.at(id);
  host_.Send(
      *this,
      {.call = id, .key = call.key, .takes = call.refund ? 0 : call.cost, .gives = call.undoes, .fresh = call.fresh},
      call.content);
  host_.At(*this, NodeHost::Timer::kTimeout, id, now + plan_.timeout);
}

void Node::OnTimeout(uint64_t id, BootTime now) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || it->second.timed_out) return;
  Call& call = it->second;
  const bool keeps = call.number != 0 && (Is(Mutant::kTimedOutGrantSpent) || Is(Mutant::kLateGrantAccepted));
  if (call.number != 0) {
    coverage_.Mark("an ask timed out");
    if (const BootTime late = call.asked_at + 3 * plan_.ttl; Is(Mutant::kLateGrantAccepted) && now < late) {
      return host_.At(*this, NodeHost::Timer::kTimeout, id, late);
    }
    keys_[call.key].ledger[call.number].over = true;
    SharedAnswer answer;
    answer.status = absl::DeadlineExceededError("no answer");
    if (host_.tracing()) host_.Say(*this, fmt::format("k{} #{}: no answer", call.key, call.number));
    Granted(call.key, call.number, answer, now);
  }
  call.timed_out = true;
  if (!keeps) calls_.erase(it);
}

void Node::OnReply(uint64_t id, const wire::RespValue& reply, BootTime now) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) {
    coverage_.Mark("an answer came after its call had timed out");
    return;
  }
  Call& call = it->second;
  const auto answer = call.content.Read(reply);
  if (!answer) {
    // Carried over to another limit: what was read, and what it becomes.
    host_.Send(
        *this,
        {.call = id, .key = call.key, .takes = call.refund ? 0 : call.cost, .gives = call.undoes, .fresh = call.fresh},
        call.content);
    return;
  }
  Answer(call, *answer, now);
  if (Is(Mutant::kAnswerTakenTwice) && call.number != 0 && !call.timed_out) {
    call.timed_out = true;
    return;
  }
  calls_.erase(it);
}

void Node::Answer(Call& call, SharedAnswer answer, BootTime now) {
  Key& key = keys_[call.key];
  if (absl::IsAborted(answer.status) && !call.timed_out) {
    // While a limit changes, others may carry the bucket over faster than this node.
    coverage_.Mark("a bucket was carried over back and forth");
    if (call.number != 0) key.ledger[call.number].over = true;
    if (call.number != 0) Granted(call.key, call.number, answer, now);
    return;
  }
  if (!answer.status.ok()) return host_.Fail(fmt::format("the store answered {}", answer.status.ToString()));
  if (answer.events.learning) coverage_.Mark("a bucket learned");
  if (answer.events.clock_reset) coverage_.Mark("a bucket was set back to the store's clock");
  if (answer.events.replaced_corrupt) host_.Fail("a bucket could not be read");
  if (answer.events.carried_over) {
    coverage_.Mark("a bucket was carried over to another limit");
  }
  if (call.number == 0) {
    if (host_.tracing()) {
      host_.Say(*this, fmt::format("k{} ×{}: the store {}", call.key, call.cost,
                                   answer.decision.allowed ? "allowed" : "denied"));
    }
    if (call.refund) return book_.OnRefunded(HashOf(call.key));
    book_.OnExact(HashOf(call.key), *call.limit, call.cost, answer.decision, call.asked_at, now);
    if (answer.decision.allowed) host_.Allowed(*this, call.key, call.cost);
    if (!answer.decision.allowed && Is(Mutant::kDenialNeverEnds)) key.denied_for_ever = true;
    return;
  }
  LeaseGrant grant = answer.grant;
  if (host_.tracing()) {
    host_.Say(*this, fmt::format("k{} #{}: granted {} for {}us, {} left, {} holders, retry {}us", call.key, call.number,
                                 grant.granted, grant.ttl.count() / 1000, grant.remaining, grant.holders,
                                 grant.retry_after.count() / 1000));
  }
  if (grant.granted > call.want) host_.Fail("more was granted than asked for");
  if (call.timed_out) {
    // Only a mutant listens.
    key.pot += grant.granted;
    key.pot_until = std::max(key.pot_until, now + Life(plan_.ttl));
    return;
  }
  Account& account = key.ledger[call.number];
  account.granted = grant.granted;
  account.deadline = call.asked_at + Life(grant.ttl);
  if (grant.granted == 0) account.over = true;
  if (grant.granted > 0) {
    if (grant.ttl < plan_.ttl) coverage_.Mark("a window cut a lease short");
    if (grant.holders > 1) coverage_.Mark("two nodes held leases of one bucket");
    if (now >= account.deadline) coverage_.Mark("a grant came after its deadline");
    if (plan_.sharp && now < account.deadline) {
      host_.At(*this, NodeHost::Timer::kRequest, call.key, account.deadline - Duration(1));
      host_.At(*this, NodeHost::Timer::kRequest, call.key, account.deadline);
    }
  }
  if (mutant_) MutateGrant(call, grant, now);
  answer.grant = grant;
  Granted(call.key, call.number, answer, now);
}

void Node::Granted(size_t index, uint64_t number, const SharedAnswer& answer, BootTime now) {
  const LeaseAction* action = book_.OnGrant(HashOf(index), number, answer, now);
  if (action != nullptr) SendAsk(index, *action, now);
  const auto awaiting = keys_[index].awaiting.extract(number);
  // Where there was no answer, the rule's failure policy decides.
  if (!awaiting.empty() && answer.status.ok()) {
    coverage_.Mark("a request awaited its lease");
    const uint64_t cost = awaiting.mapped();
    const LeaseVerdict verdict = book_.TakeAgain(HashOf(index), *keys_[index].limit, cost, now);
    if (host_.tracing()) host_.Say(*this, fmt::format("k{} ×{} again: {}", index, cost, Text(verdict)));
    Follow(index, cost, verdict, now);
  }
  Wake();
}

// ---- The ledger

void Node::CheckSpent(size_t index, uint64_t cost, BootTime now) {
  Key& key = keys_[index];
  uint64_t seen = 0;
  if (const HeldLeases* held = book_.Held(HashOf(index))) {
    for (const HeldLease& lease : *held) {
      Account& account = key.ledger[lease.number];
      if (lease.spent < account.spent) Wrong(fmt::format("lease #{} was unspent", lease.number));
      if (lease.spent == account.spent) continue;
      seen += lease.spent - account.spent;
      account.spent = lease.spent;
      if (account.over) Wrong(fmt::format("lease #{} was spent when it was over", lease.number));
      if (now >= account.deadline) Wrong(fmt::format("lease #{} was spent after its deadline", lease.number));
      if (account.spent > account.granted) Wrong(fmt::format("lease #{} was overspent", lease.number));
      if (now == account.deadline - Duration(1)) coverage_.Mark("the last instant of a lease was used");
    }
  }
  for (const auto& [number, account] : key.ledger) {
    if (!plan_.sharp) break;
    if (account.deadline == now && account.granted > 0) coverage_.Mark("a request came at the very deadline");
  }
  if (seen != cost) Wrong(fmt::format("{} were let through, {} were spent", cost, seen));
}

void Node::CheckGivenBack(size_t index, uint64_t given) {
  Key& key = keys_[index];
  uint64_t seen = 0;
  if (const HeldLeases* held = book_.Held(HashOf(index))) {
    for (const HeldLease& lease : *held) {
      Account& account = key.ledger[lease.number];
      if (lease.spent >= account.spent) continue;
      seen += account.spent - lease.spent;
      account.spent = lease.spent;
      if (account.over) Wrong(fmt::format("something was given back into lease #{} when it was over", lease.number));
      if (account.spent < account.reported) {
        Wrong(fmt::format("lease #{} was given back what the store knows of", lease.number));
      }
    }
  }
  if (seen != given) Wrong(fmt::format("{} were given back, {} are there", given, seen));
}

void Node::CheckReports(size_t index, const LeaseAsk& ask, BootTime now) {
  for (const LeaseReport& report : ask.reports) {
    Account& account = keys_[index].ledger[report.number];
    if (report.spent != account.spent) {
      Wrong(fmt::format("lease #{} was said to be spent {}, not {}", report.number, report.spent, account.spent));
    }
    if (report.returned && account.granted > 0 && now >= account.deadline) {
      Wrong(fmt::format("lease #{} was returned after its end", report.number));
    }
    account.reported = std::max(account.reported, report.spent);
    if (report.returned) account.over = true;
  }
}

// ---- Planted bugs

void Node::MutateAsk(Key& key, LeaseAsk& ask, std::vector<LeaseReport>& reports, BootTime now) {
  if (Is(Mutant::kNumbersAfterRestart)) ask.id.node = index_ + 1;
  if (Is(Mutant::kExpiresEarly)) ask.ttl /= 2;
  if (Is(Mutant::kNeverRenewed) && ask.want > 0) {
    if (key.asked) ask.want = 0;
    key.asked = true;
  }
  if (Is(Mutant::kNeverReturned) && ask.want == 0) reports.clear();
  for (LeaseReport& report : reports) {
    if (Is(Mutant::kReportNotCumulative)) {
      const uint64_t before = std::exchange(key.reported[report.number], report.spent);
      report.spent -= std::min(before, report.spent);
    }
    if (!report.returned) continue;
    const uint64_t granted = key.ledger[report.number].granted;
    if (Is(Mutant::kReturnForgetsWhatWasSpent)) report.spent = 0;
    if (Is(Mutant::kReturnedAndSpent) && granted > report.spent) {
      key.pot += granted - report.spent;
      key.pot_until = key.ledger[report.number].deadline;
    }
  }
  if (Is(Mutant::kReturnedAfterItsEnd)) {
    for (const auto& [number, account] : key.ledger) {
      if (!account.over && account.granted > account.spent && now >= account.deadline) {
        reports.push_back({.number = number, .spent = account.spent, .returned = true});
        LeaseAsk late = ask;
        late.reports = std::span(reports).last(1);
        return CheckReports(static_cast<size_t>(&key - keys_.data()), late, now);
      }
    }
  }
}

void Node::MutateGrant(const Call& call, LeaseGrant& grant, BootTime now) {
  if (grant.granted == 0) return;
  const Duration late = now - call.asked_at;
  if (Is(Mutant::kExpiresEarly)) grant.ttl *= 2;
  if (Is(Mutant::kLeaseNeverEnds)) grant.ttl = std::chrono::hours(1);
  if (Is(Mutant::kDeadlineFromReceipt)) grant.ttl += late;
  if (Is(Mutant::kNoMargin)) grant.ttl += grant.ttl * 2 / 35;
  if (Is(Mutant::kDeadlineOneLater)) {
    const Duration life = Life(grant.ttl);
    while (Life(grant.ttl) == life) grant.ttl += Duration(1);
  }
  if (Is(Mutant::kLateGrantAccepted) && late >= Life(grant.ttl)) grant.ttl += late;
}

}  // namespace headgate::simulation
