// A node's calls: each request of its SharedDecider to the shared store becomes a message, and each
// reply or timeout becomes an answer.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/node.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using store::LeaseAsk;
using store::LeaseGrant;
using store::LeaseReport;
using store::Operation;
using store::SharedAnswer;
using store::SharedRequest;
using store::redis::BucketCall;
using CallOutcome = Evidence::Call;

void Node::Ask(const SharedRequest& request, Done done) {
  const size_t key = KeyOf(request.name);
  if (const auto answer = BucketCall::AnswerWithoutStore(request))
    return AnswerHere(key, request, *answer, done);
  if (request.lease) return AskLease(key, request, std::move(done));
  AskDecision(key, request, std::move(done));
}

// A limit of 0 requests, or a refund to a queue: the bucket stays unchanged.
void Node::AnswerHere(size_t key, const SharedRequest& request, const SharedAnswer& answer,
                      const Done& done) {
  if (!answer.status.ok() && GivesBack(request.operation)) {
    coverage_.Mark("a queue took nothing back");
  }
  Request* const asker = turn_.request;
  const bool refuses =
      !answer.status.ok() && asker != nullptr && asker->operation == request.operation;
  if (refuses) EvidenceOf(*asker, key)->decision = CallOutcome::kFailed;
  if (request.lease) {
    Compare(key);
    if (request.lease->id.number != 0) {
      instance_.ledger(key).OnAsk(*request.lease, now_);
      instance_.ledger(key).OnFailure(request.lease->id.number);
    }
    if (asker != nullptr && request.lease->cost > 0)
      EvidenceOf(*asker, key)->decision = CallOutcome::kAnswered;
  }
  done(answer);
}

// Whether a call may be sent now, and how; kRefused: it fails at once. `learns`: the call has to
// wait while the shard learns a history.
store::Breaker::Pass Node::MayAsk(bool learns) {
  if (!connected()) return store::Breaker::Pass::kRefused;
  if (learns && histories_.LearningUntil(shard_, now_)) {
    coverage_.Mark("a call was kept back while a history was learned");
    return store::Breaker::Pass::kRefused;
  }
  const store::Breaker::Pass pass = breaker_.Ask(now_);
  if (pass == store::Breaker::Pass::kRefused) coverage_.Mark("the breaker refused a call");
  if (pass == store::Breaker::Pass::kProbe) coverage_.Mark("the breaker let a probe through");
  return pass;
}

void Node::FinishPass(Call& call, store::Breaker::Outcome outcome) {
  const store::Breaker::Pass pass = std::exchange(call.pass, store::Breaker::Pass::kRefused);
  if (pass != store::Breaker::Pass::kRefused) breaker_.Finish(pass, outcome, now_);
}

void Node::AskDecision(size_t key, const SharedRequest& request, Done done) {
  const uint64_t id = ++last_call_;
  const bool gives_back = GivesBack(request.operation);
  BucketCall content(request, Context());
  const store::Breaker::Pass pass = MayAsk(content.learns());
  const bool goes = pass != store::Breaker::Pass::kRefused;
  bool own = false;
  if (Request* asker = turn_.request; asker != nullptr) {
    if (request.operation == Operation::kPeek) Account(key);
    Evidence& evidence = *EvidenceOf(*asker, key);
    if (gives_back && asker->operation != Operation::kRefund) {
      evidence.refunded += request.cost;
    } else if (evidence.decision != CallOutcome::kNone ||
               (request.operation == Operation::kPeek && evidence.spent != 0)) {
      // Another member of the group denied the request. This member was decided before; now the
      // store counts the request, or only peeks.
    } else {
      own = true;
      evidence.decision = goes ? CallOutcome::kOpen : CallOutcome::kFailed;
      evidence.took = request.operation == Operation::kTake;
    }
  } else if (request.operation == Operation::kCharge) {
    coverage_.Mark("a local admission was taken from the shared bucket");
    host_.OnDebt(*this, id);
  } else {
    Wrong("the store was asked, but for no request");
  }
  if (host_.tracing()) {
    host_.Say(*this, fmt::format("k{} ×{}: operation {} asked for request {}{}", key, request.cost,
                                 static_cast<int>(request.operation), turn_.id,
                                 own ? "" : ", not its decision"));
  }
  if (!goes) {
    SharedAnswer answer;
    answer.status = absl::UnavailableError("cannot be asked");
    return done(answer);
  }
  calls_.try_emplace(id, Call{.key = key,
                              .request = turn_.id,
                              .own = own,
                              .operation = request.operation,
                              .cost = request.cost,
                              .undoes = gives_back ? request.cost : 0,
                              .taken_at = request.taken_at,
                              .asked_at = now_,
                              .content = std::move(content),
                              .done = std::move(done),
                              .pass = pass});
  Send(id);
}

// A message about a key with leases. If it takes, it decides a request.
void Node::AskLease(size_t index, const SharedRequest& request, Done done) {
  LeaseAsk ask = *request.lease;
  const uint64_t number = ask.id.number;
  Compare(index);
  if (number != 0) instance_.ledger(index).OnAsk(ask, now_);
  turn_.asked_lease = ask.want > 0;
  const store::Breaker::Pass pass = MayAsk(/*learns=*/ask.want > 0 || ask.cost > 0);
  const bool goes = pass != store::Breaker::Pass::kRefused;
  Evidence* evidence =
      turn_.request != nullptr && ask.cost > 0 ? EvidenceOf(*turn_.request, index) : nullptr;
  if (ask.cost > 0 && evidence == nullptr) Wrong("the store was asked, but for no request");
  if (evidence != nullptr) {
    evidence->decision = goes ? CallOutcome::kOpen : CallOutcome::kFailed;
    evidence->took = true;
    evidence->allowed = false;
  }
  std::vector<LeaseReport> reports(ask.reports.begin(), ask.reports.end());
  for (const LeaseReport& report : reports) {
    if (report.returned) coverage_.Mark("a lease was returned");
  }
  if (mutant_ && number != 0) MutateAsk(index, ask, reports);
  if (host_.tracing()) {
    host_.Say(*this, fmt::format("k{} #{}: asks for {} or {} of {}, taking {} for request {}{}",
                                 index, number, ask.want, ask.brief, ask.parts, ask.cost, turn_.id,
                                 goes ? "" : ", in vain"));
    for (const LeaseReport& report : reports) {
      host_.Say(*this, fmt::format("  of #{}: {} spent{}", report.number, report.spent,
                                   report.returned ? ", returned" : ""));
    }
  }
  if (!goes) {
    coverage_.Mark("an ask could not be sent");
    if (number != 0) instance_.ledger(index).OnFailure(number);
    SharedAnswer answer;
    answer.status = absl::UnavailableError("cannot be asked");
    return done(answer);
  }
  ask.reports = reports;
  SharedRequest sent = request;
  sent.lease = ask;
  const uint64_t id = ++last_call_;
  calls_.try_emplace(id, Call{.key = index,
                              .request = turn_.id,
                              .own = evidence != nullptr,
                              .cost = request.lease->cost,
                              .number = number,
                              .most = std::max(ask.want, ask.brief),
                              .reports = reports,
                              .asked_at = now_,
                              .content = BucketCall(sent, Context()),
                              .done = std::move(done),
                              .pass = pass});
  Send(id);
}

void Node::Send(uint64_t id) {
  SendContent(id, calls_.at(id));
  host_.At(*this, NodeHost::Timer::kTimeout, id, now_ + plan_.timeout);
}

void Node::SendContent(uint64_t id, const Call& call) {
  const bool takes = call.operation == Operation::kTake || call.operation == Operation::kCharge;
  host_.Send(*this,
             {.call = id,
              .key = call.key,
              .takes = takes ? call.cost : 0,
              .gives = call.undoes,
              .request = call.request,
              .taken_at = call.taken_at,
              .resets = call.operation == Operation::kReset,
              .number = call.number,
              .reports = call.reports},
             call.content);
}

void Node::OnTimeout(uint64_t id, BootTime now) {
  now_ = now;
  const auto it = calls_.find(id);
  if (it == calls_.end() || it->second.timed_out) return;
  Call& call = it->second;
  if (call.number != 0) {
    coverage_.Mark("an ask timed out");
    if (const BootTime late = call.asked_at + 3 * plan_.ttl;
        Is(Mutant::kLateGrantAccepted) && now < late) {
      return host_.At(*this, NodeHost::Timer::kTimeout, id, late);
    }
    instance_.ledger(call.key).OnFailure(call.number);
  }
  FinishPass(call, store::Breaker::Outcome::kNoAnswer);
  if (host_.tracing()) host_.Say(*this, fmt::format("k{} #{}: no answer", call.key, call.number));
  SharedAnswer answer;
  answer.status = absl::DeadlineExceededError("no answer");
  call.timed_out = true;
  NoteAnswer(call, answer);
  const bool keeps = mutant_ && MutateFailure(call, answer);
  Complete(call, answer);
  if (!keeps) calls_.erase(it);
}

void Node::OnReply(uint64_t id, const wire::RespValue& reply, BootTime now) {
  now_ = now;
  const auto it = calls_.find(id);
  if (it == calls_.end()) {
    coverage_.Mark("an answer came after its call had timed out");
    breaker_.OnLateAnswer(now);
    return;
  }
  Call& call = it->second;
  FinishPass(call, store::Breaker::Outcome::kSuccess);
  answered_at_ = now;
  auto answer = call.content.Read(reply);
  // The stored bucket is one of another limit: the call is sent again, with the bucket carried
  // over.
  if (!answer) return SendContent(id, call);
  MarkAnswer(call, *answer);
  if (call.timed_out) {
    OnLate(call, *answer);
  } else {
    if (Call* other = mutant_ ? AnotherCall(call) : nullptr; other != nullptr) {
      const auto wrong = std::find_if(calls_.begin(), calls_.end(),
                                      [&](auto& each) { return &each.second == other; });
      Complete(*other, *answer);
      calls_.erase(wrong);
      return;
    }
    if (call.number != 0 && answer->status.ok()) OnGrant(call, answer->grant);
    NoteAnswer(call, *answer);
    Complete(call, *answer);
    if (Is(Mutant::kAnswerTakenTwice) && call.number != 0) {
      call.timed_out = true;
      return;
    }
  }
  calls_.erase(it);
}

// Applies the answer, or the missing answer, to the request that the call belongs to.
void Node::NoteAnswer(const Call& call, const SharedAnswer& answer) {
  const CallOutcome outcome = answer.status.ok() ? CallOutcome::kAnswered : CallOutcome::kFailed;
  for (auto& [id, request] : requests_) {
    Evidence* const evidence = EvidenceOf(request, call.key);
    if (evidence == nullptr) continue;
    if (call.own && id == call.request) {
      evidence->decision = outcome;
      evidence->allowed = answer.status.ok() && answer.decision.allowed;
      evidence->denied = evidence->denied || (answer.status.ok() && !answer.decision.allowed);
    } else if (call.number != 0 && evidence->decision == CallOutcome::kNone &&
               evidence->awaited != CallOutcome::kFailed) {
      evidence->awaited = outcome;
    }
  }
}

// Passes the answer to the SharedDecider, and each decision that follows to its caller.
void Node::Complete(Call& call, const SharedAnswer& answer) {
  const auto found = requests_.find(call.request);
  if (found != requests_.end()) turn_ = {.request = &found->second, .id = call.request};
  const Done done = std::move(call.done);
  done(answer);
  EndTurn(call.key);
}

void Node::MarkAnswer(const Call& call, const SharedAnswer& answer) {
  if (absl::IsAborted(answer.status)) {
    // While a limit changes, other instances may carry the bucket over again before this node's
    // answer arrives.
    coverage_.Mark("a bucket was carried over back and forth");
    if (call.number != 0) instance_.ledger(call.key).OnFailure(call.number);
    return;
  }
  if (!answer.status.ok())
    return host_.Fail(fmt::format("the store answered {}", answer.status.ToString()));
  if (IsGate(call.key)) return;
  if (answer.events.clock_reset) coverage_.Mark("a bucket was set back to the store's clock");
  if (answer.events.carried_over) coverage_.Mark("a bucket was carried over to another limit");
  if (answer.grant.granted > call.most) host_.Fail("more was granted than asked for");
  if (!host_.tracing()) return;
  const LeaseGrant& grant = answer.grant;
  if (call.number == 0) {
    host_.Say(*this, fmt::format("k{} ×{}: the store {}", call.key, call.cost,
                                 answer.decision.allowed ? "allowed" : "denied"));
  } else {
    host_.Say(*this,
              fmt::format("k{} #{}: {}, granted {} for {}us, {} left, {} at others, next {}us",
                          call.key, call.number, answer.decision.allowed ? "allowed" : "denied",
                          grant.granted, grant.ttl.count() / 1000, answer.decision.remaining,
                          grant.others, grant.next_after.count() / 1000));
  }
}

void Node::OnGrant(Call& call, LeaseGrant& grant) {
  const BootTime deadline = instance_.ledger(call.key).OnGrant(call.number, grant, call.asked_at);
  if (grant.granted == 0) return;
  if (grant.ttl > plan_.ttl) coverage_.Mark("a tiny lease was granted");
  if (grant.ttl < plan_.ttl) coverage_.Mark("a window cut a lease short");
  if (grant.others > 0) coverage_.Mark("two nodes held leases of one bucket");
  if (now_ >= deadline) coverage_.Mark("a grant came after its deadline");
  // Not if demand has to be equal: these requests would add to the demand of the instance with the
  // lease.
  if (plan_.sharp && !plan_.even && now_ < deadline) {
    host_.At(*this, NodeHost::Timer::kRequest, call.key, deadline - Duration(1));
    host_.At(*this, NodeHost::Timer::kRequest, call.key, deadline);
  }
  if (mutant_) MutateGrant(call, grant);
}

}  // namespace headgate::simulation
