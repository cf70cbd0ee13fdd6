#include "headgate/proxy/part_wait.h"

#include <utility>

#include "headgate/proxy/grpc.h"

namespace headgate::proxy {

PartWait::PartWait(Owner& owner, HeldRequests& held, Arrival arrival,
                   const std::optional<wire::RateLimitState>& rule_limit, uint64_t ticket,
                   http::ServerExchange& exchange, base::Instant now)
    : owner_(owner),
      held_(held),
      exchange_(exchange),
      arrival_(std::move(arrival)),
      peer_(*arrival_.peer),
      rule_limit_(rule_limit),
      ticket_(ticket),
      arrived_(now) {
  arrival_.peer = &peer_;
  if (rule_limit_) {
    policy_ = rule_limit_->policy;
    rule_limit_->policy = policy_;
  }
  held_.Hold(*this, now + kAskAgain);
}

void PartWait::OnDue(base::Instant now) {
  const bool is_last = now - arrived_ >= kPatience || held_.ends_before(now + kAskAgain);
  const AdmissionVerdict verdict =
      owner_.AskAgain(arrival_, {.ticket = ticket_, .is_last = is_last}, now);
  if (verdict.ticket != 0 && !is_last) {
    ticket_ = verdict.ticket;
    return held_.Hold(*this, now + kAskAgain);
  }
  ShortenGrpcTimeout(now - arrived_, arrival_.head);
  next_ = owner_.Proceed(std::move(arrival_), verdict, rule_limit_, exchange_, now);
  if (!body_.empty()) next_->OnData(std::exchange(body_, {}), now);
  if (ended_) next_->OnEnd(trailers_, now);
}

void PartWait::OnData(std::string_view bytes, base::Instant now) {
  if (next_ != nullptr) return next_->OnData(bytes, now);
  body_.append(bytes);
}

void PartWait::OnEnd(const http::Fields& trailers, base::Instant now) {
  if (next_ != nullptr) return next_->OnEnd(trailers, now);
  trailers_ = trailers;
  ended_ = true;
}

// A part that arrives later is for the client's next request.
void PartWait::OnAbort(base::Instant now) {
  if (next_ != nullptr) return next_->OnAbort(now);
  Leave();
  body_.clear();
}

void PartWait::OnWritable(base::Instant now) {
  if (next_ != nullptr) next_->OnWritable(now);
}

}  // namespace headgate::proxy
