#include "headgate/proxy/waiting_request.h"

#include <algorithm>
#include <utility>

#include "headgate/proxy/grpc.h"

namespace headgate::proxy {

WaitingRequest::~WaitingRequest() { Leave(arrived_); }

gate::Asked& WaitingRequest::MakeAsked() {
  // The answer comes in the middle of other work. The request continues in a later turn of the
  // loop.
  return asked_.emplace([this] { gate_.held_.Hold(*this, base::Instant{0}); });
}

void WaitingRequest::Keep(Arrival arrival, base::Instant now) {
  peer_ = *arrival.peer;
  arrival_ = std::move(arrival);
  arrival_.peer = &peer_;
  arrived_ = now;
  // Unless the answer has come already.
  if (asked_ && !is_held()) gate_.held_.Await(*this);
}

void WaitingRequest::Hold(const gate::Verdict& verdict, base::Instant now) {
  asked_.reset();
  in_queue_ = true;
  gate_.counters_.verdicts.held_begun.Add();
  decided_ = now;
  limit_ = verdict.limit;
  if (limit_) {
    // The rules may be replaced meanwhile.
    policy_ = limit_->policy;
    limit_->policy = policy_;
  }
  gate_.held_.Hold(*this, now + verdict.wait);
}

void WaitingRequest::EndHold() {
  if (std::exchange(in_queue_, false)) gate_.counters_.verdicts.held_ended.Add();
}

void WaitingRequest::OnDue(base::Instant now) {
  if (asked_) return OnAnswer(now);
  EndHold();
  if (limit_) {
    const base::Duration waited = now - decided_;
    limit_->reset_after = std::max(base::Duration(0), limit_->reset_after - waited);
    if (limit_->more_after)
      limit_->more_after = std::max(base::Duration(0), *limit_->more_after - waited);
  }
  Enter(limit_, now);
}

void WaitingRequest::OnAnswer(base::Instant now) {
  const base::Duration wait_max = gate_.BoundOf(arrival_, entrance_, now).wait_max;
  if (!gate_.judge_.Continue(*asked_, now, gate_.verdict_, wait_max)) {
    if (!is_held()) gate_.held_.Await(*this);
    return;
  }
  gate_.Follow(arrival_, now);
  switch (gate_.NextOf(arrival_, entrance_, now)) {
    case RuleGate::Next::kHold:
      return Hold(gate_.verdict_, now);
    case RuleGate::Next::kRefuse: {
      auto refused = gate_.Refuse(arrival_, entrance_, exchange_, now);
      // The listeners are told only now, because they may ask the checker, and the verdict still
      // refers to the checker's last answer.
      arrival_.end.Tell({}, now);
      return Become(std::move(refused), now);
    }
    case RuleGate::Next::kEnter:
      break;
  }
  asked_.reset();
  Enter(gate_.verdict_.limit, now);
}

void WaitingRequest::OnQueueEnded(base::Instant now) {
  asked_.reset();
  EndHold();
  auto refused = gate_.RefuseAtEnd(arrival_, entrance_, exchange_, now);
  arrival_.end.Tell({}, now);
  Become(std::move(refused), now);
}

void WaitingRequest::Enter(const std::optional<wire::RateLimitState>& limit, base::Instant now) {
  ShortenGrpcTimeout(now - arrived_, arrival_.head);
  Become(entrance_.Enter(std::move(arrival_), limit, exchange_, now), now);
}

void WaitingRequest::Become(std::unique_ptr<http::RequestReceiver> next, base::Instant now) {
  asked_.reset();
  next_ = std::move(next);
  if (!body_.empty()) next_->OnData(std::exchange(body_, {}), now);
  if (ended_) next_->OnEnd(trailers_, now);
}

void WaitingRequest::Leave(base::Instant now) {
  if (next_ != nullptr || std::exchange(left_, true)) return;
  Entry::Leave();
  EndHold();
  asked_.reset();
  body_.clear();
  if (arrival_.peer == nullptr) return;  // the rules have refused it at once
  gate_.counters_.held_left.Add();
  arrival_.end.Tell({}, now);
  entrance_.OnClientLeft(arrival_, now);
}

void WaitingRequest::OnData(std::string_view bytes, base::Instant now) {
  if (next_ != nullptr) return next_->OnData(bytes, now);
  body_.append(bytes);
}

void WaitingRequest::OnEnd(const http::Fields& trailers, base::Instant now) {
  if (next_ != nullptr) return next_->OnEnd(trailers, now);
  trailers_ = trailers;
  ended_ = true;
}

void WaitingRequest::OnAbort(base::Instant now) {
  if (next_ != nullptr) return next_->OnAbort(now);
  Leave(now);
}

void WaitingRequest::OnWritable(base::Instant now) {
  if (next_ != nullptr) next_->OnWritable(now);
}

}  // namespace headgate::proxy
