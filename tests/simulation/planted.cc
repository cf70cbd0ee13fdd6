// The planted bugs of a node: faults.h.
#include <array>
#include <utility>

#include "tests/simulation/node.h"

namespace headgate::simulation {

using base::Duration;
using limiter::Mode;
using limiter::Settled;
using store::LeaseAsk;
using store::LeaseGrant;
using store::LeaseReport;
using store::Operation;
using store::SharedAnswer;

// Leases that a mutant spends in addition to the book's.
bool Node::SpendPot(size_t index, uint64_t cost) {
  Key& key = keys_[index];
  if (key.pot < cost || now_ >= key.pot_until) return false;
  key.pot -= cost;
  host_.Admit(*this, index, cost, 0);
  return true;
}

void Node::MutateAsk(size_t index, LeaseAsk& ask, std::vector<LeaseReport>& reports) {
  Key& key = keys_[index];
  if (Is(Mutant::kNumbersAfterRestart)) ask.id.node = this->index() + 1;
  if (Is(Mutant::kExpiresEarly)) ask.ttl /= 2;
  if (Is(Mutant::kTakenTwice)) ask.cost *= 2;
  if (Is(Mutant::kNeverRenewed) && ask.want > 0) {
    if (key.asked) ask.want = 0;
    key.asked = true;
  }
  if (Is(Mutant::kNeverReturned) && ask.want == 0 && ask.cost == 0) reports.clear();
  const auto& accounts = instance_.ledger(index).accounts();
  for (LeaseReport& report : reports) {
    if (Is(Mutant::kReportNotCumulative)) {
      const uint64_t before = std::exchange(key.reported[report.number], report.spent);
      report.spent -= std::min(before, report.spent);
    }
    if (!report.returned) continue;
    const Ledger::Account& account = accounts.at(report.number);
    if (Is(Mutant::kReturnForgetsWhatWasSpent)) report.spent = 0;
    if (Is(Mutant::kReturnedAndSpent) && account.granted > report.spent) {
      key.pot += account.granted - report.spent;
      key.pot_until = account.deadline;
    }
  }
}

void Node::MutateGrant(const Call& call, LeaseGrant& grant) {
  const Duration late = now_ - call.asked_at;
  if (Is(Mutant::kExpiresEarly)) grant.ttl *= 2;
  if (Is(Mutant::kLeaseNeverEnds)) grant.ttl = std::chrono::hours(1);
  if (Is(Mutant::kDeadlineFromReceipt)) grant.ttl += late;
  if (Is(Mutant::kNoMargin)) grant.ttl += grant.ttl * 2 / 35;
  if (Is(Mutant::kDeadlineOneLater)) {
    const Duration life = Ledger::Life(grant.ttl);
    while (Ledger::Life(grant.ttl) == life) grant.ttl += Duration(1);
  }
  if (Is(Mutant::kLateGrantAccepted) && late >= Ledger::Life(grant.ttl)) grant.ttl += late;
}

void Node::RefundOnceMore(size_t index, uint64_t cost) {
  if (!connected()) return;
  const std::string name = NameOf(index);
  const uint64_t id = ++last_call_;
  calls_.try_emplace(id, Call{.key = index,
                              .request = 0,
                              .operation = Operation::kRefund,
                              .cost = cost,
                              .asked_at = now_,
                              .content = store::redis::BucketCall({.name = name,
                                                                   .limit = keys_[index].limit,
                                                                   .cost = cost,
                                                                   .operation = Operation::kRefund,
                                                                   .leased = true},
                                                                  Context()),
                              .done = [](const SharedAnswer&) {},
                              .pass = store::Breaker::Pass::kRefused});
  Send(id);
}

bool Node::MutateFailure(const Call& call, SharedAnswer& answer) {
  const bool decides = call.own && call.number == 0;
  if (Is(Mutant::kTimeoutCalledExact) && decides) answer.status = absl::OkStatus();
  if (Is(Mutant::kLateAnswerDecidesAgain)) return decides;
  return call.number != 0 && (Is(Mutant::kTimedOutGrantSpent) || Is(Mutant::kLateGrantAccepted));
}

void Node::OnLate(const Call& call, const SharedAnswer& answer) {
  if (call.number == 0) {
    std::array<Settled, 2> settled{Settled{answer.decision, Mode::kExact},
                                   Settled{answer.decision, Mode::kExact}};
    return TellWaiting(call.request, settled);
  }
  Key& key = keys_[call.key];
  key.pot += answer.grant.granted;
  key.pot_until = std::max(key.pot_until, now_ + Ledger::Life(plan_.ttl));
}

// A call of another request, for another key.
Node::Call* Node::AnotherCall(const Call& call) {
  if (!Is(Mutant::kAnswerForAnother) || !call.own || call.number != 0) return nullptr;
  for (auto& [id, other] : calls_) {
    if (other.own && other.number == 0 && other.key != call.key && other.request != call.request)
      return &other;
  }
  return nullptr;
}

}  // namespace headgate::simulation
