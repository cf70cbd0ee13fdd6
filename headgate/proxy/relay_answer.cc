// The upstream's side of a relay.
#include <algorithm>
#include <array>
#include <utility>

#include "headgate/proxy/relay.h"

namespace headgate::proxy {
namespace {

using http::Failure;

// RFC 9110, 9.2.2.
bool IsIdempotent(std::string_view method) {
  constexpr std::array<std::string_view, 6> kMethods = {"GET",   "HEAD", "OPTIONS",
                                                        "TRACE", "PUT",  "DELETE"};
  return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

// A server that cannot do its work says so fast, which is not a sign of speed.
bool IsFailure(int status) { return status == 502 || status == 503 || status == 504; }

// Whether the body that a length announces is sent (RFC 9110, 6.4.1).
bool HasBody(std::string_view method, int status) {
  return method != "HEAD" && status != 204 && status != 304;
}

bool IsEmpty(const http::BodyLength& body) {
  using Kind = http::BodyLength::Kind;
  return body.kind == Kind::kNone || (body.kind == Kind::kSized && body.bytes == 0);
}

bool IsNotSent(Failure failure) {
  return failure == Failure::kNotSent || failure == Failure::kNoTunnels;
}

}  // namespace

void Relay::Answer::OnInformational(const http::ResponseHead& head, base::Instant now) {
  Relay& relay = relay_;
  relay.moved_ = now;
  if (head.status != 100) return relay.client_.SendInformational(head);
  // A client that has not asked for 100 does not expect it; and none expects it twice.
  if (!std::exchange(relay.holds_for_continue_, false)) return;
  if (!std::exchange(relay.continue_sent_, true)) relay.client_.SendInformational(head);
  if (!relay.holds_body()) relay.ReleaseBody();
  relay.SetTimeout();
}

void Relay::Answer::OnHead(http::ResponseHead head, base::Instant now) {
  Relay& relay = relay_;
  relay.moved_ = now;
  relay.context_.counters.head_seconds.Add(
      static_cast<uint64_t>(std::max<int64_t>(0, (now - relay.asked_).count())));
  // The proxy's own words replace those of the upstream about the same thing.
  for (const auto [name, value] : relay.response_fields_) head.fields.Remove(name);
  for (const auto [name, value] : relay.response_fields_) head.fields.Add(name, value);
  const bool tunnel = head.body.kind == http::BodyLength::Kind::kTunnel;
  if (tunnel && !relay.websocket_.Answer(head.fields)) return relay.FailInvalid(now);
  relay.LeavePool(tunnel                   ? Left::kUnasked
                  : IsFailure(head.status) ? Left::kFailed
                                           : Left::kAnswered,
                  now);
  if (head.body.kind == http::BodyLength::Kind::kSized && HasBody(relay.head_.method, head.status))
    relay.end_.TellResponseSize(head.body.bytes, now);
  relay.may_have_trailers_ = head.body.kind == http::BodyLength::Kind::kUnsized;
  relay.stage_ = tunnel ? Stage::kTunnel : Stage::kAnswering;
  relay.client_.SendHead(head);
  if (tunnel) return relay.BeginTunnel();
  relay.holds_for_continue_ = false;
  if (relay.head_.protocol.empty()) {
    relay.ReleaseBody();
  } else {
    // A refused tunnel. Its bytes are dropped.
    relay.end_sent_ = true;
    relay.upstream_->SendEnd({});
  }
  relay.ForgetRequest();
  relay.SetTimeout();
}

void Relay::BeginTunnel() {
  context_.counters.tunnels.Add();
  ReleaseBody();
  ForgetRequest();
  SetTimeout();
}

// The answer has begun. The request may last as long as it.
void Relay::ForgetRequest() {
  ForgetBody();
  head_.fields = {};
  std::string().swap(head_.target);
  head_bytes_ = 0;
}

// No other attempt will be made.
void Relay::ForgetBody() {
  body_kept_ = false;
  body_.clear();
  body_sent_ = 0;
}

void Relay::Answer::OnData(std::string_view bytes, base::Instant now) {
  Relay& relay = relay_;
  relay.moved_ = now;
  relay.Count(relay.sizes_.response, bytes.size(), now);
  relay.upstream_uncredited_ += bytes.size();
  relay.client_.SendData(bytes);
  relay.CreditUpstream();
}

void Relay::CreditUpstream() {
  if (upstream_uncredited_ == 0 || client_.unsent_bytes() >= http::kWindowBytes) return;
  upstream_->Consumed(std::exchange(upstream_uncredited_, 0));
}

void Relay::Answer::OnEnd(const http::Fields& trailers, base::Instant now) {
  Relay& relay = relay_;
  relay.moved_ = now;
  relay.client_.SendEnd(trailers);
  if (relay.stage_ == Stage::kTunnel) {
    relay.answer_ended_ = true;
    if (!relay.end_sent_) return;
  }
  relay.LeavePlace(Ended::kWell, now);
  relay.Finish(Outcome::kAnswered, now);
}

bool Relay::MayTryAgain(Failure failure) const {
  if (stage_ != Stage::kAsked || attempts_ >= context_.options.attempts_max) return false;
  if (IsNotSent(failure)) return body_kept_;
  return failure == Failure::kNoAnswer && place_->reused() && !tried_after_no_answer_ &&
         IsIdempotent(head_.method) && IsEmpty(head_.body);
}

void Relay::Answer::OnFailed(Failure failure, std::string_view /*detail*/, base::Instant now) {
  Relay& relay = relay_;
  relay.upstream_ = nullptr;
  const bool again = relay.MayTryAgain(failure);
  const bool blameless =
      IsNotSent(failure) || (failure == Failure::kNoAnswer && relay.place_->reused());
  relay.LeavePlace(blameless ? Ended::kNotBegun : Ended::kFailed, now);
  if (again) {
    relay.tried_after_no_answer_ = relay.tried_after_no_answer_ || failure == Failure::kNoAnswer;
    relay.context_.counters.retries.Add();
    relay.moved_ = now;
    relay.TakePlace(now);
    return relay.SetTimeout();
  }
  if (relay.stage_ != Stage::kAsked) return relay.CutShort(Outcome::kCutShort, now);
  if (failure == Failure::kInvalid) return relay.FailInvalid(now);
  if (failure == Failure::kNoTunnels) {
    return relay.Fail({.outcome = Outcome::kUnsuitable,
                       .status = 501,
                       .detail = "the upstream takes no tunnels over HTTP/2 (RFC 8441)",
                       .error = "proxy_configuration_error"},
                      Ended::kNotBegun, now);
  }
  relay.Fail({.outcome = Outcome::kBroken,
              .status = 502,
              .detail = "the upstream closed the connection before it answered",
              .error = "connection_terminated"},
             Ended::kFailed, now);
}

void Relay::FailInvalid(base::Instant now) {
  Fail({.outcome = Outcome::kBroken,
        .status = 502,
        .detail = "the upstream's answer violates HTTP",
        .error = "http_protocol_error"},
       Ended::kFailed, now);
}

void Relay::Answer::OnWritable(base::Instant now) {
  relay_.moved_ = now;
  relay_.CreditClient();
}

}  // namespace headgate::proxy
