// The upstream's side of a relay.
#include <algorithm>
#include <array>
#include <utility>

#include "headgate/base/time_of_day.h"
#include "headgate/http/date.h"
#include "headgate/proxy/grpc.h"
#include "headgate/proxy/relay.h"

namespace headgate::proxy {
namespace {

using http::BodyLength;
using http::Failure;

// RFC 9110, 9.2.2.
bool IsIdempotent(std::string_view method) {
  constexpr std::array<std::string_view, 6> kMethods = {"GET",   "HEAD", "OPTIONS",
                                                        "TRACE", "PUT",  "DELETE"};
  return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

// A server that cannot do its work answers fast, which says nothing about its speed.
bool IsFailure(int status) { return status == 502 || status == 503 || status == 504; }

// Whether the body that a length announces is sent (RFC 9110, 6.4.1).
bool HasBody(std::string_view method, int status) {
  return method != "HEAD" && status != 204 && status != 304;
}

void RemoveContent(http::ResponseHead& head) {
  for (const std::string_view name :
       {"Set-Cookie", "Content-Type", "Content-Encoding", "Content-Range", "Content-MD5", "ETag"})
    head.fields.Remove(name);
  if (head.body.kind != BodyLength::Kind::kNone) head.body = {.kind = BodyLength::Kind::kSized};
}

bool IsNotSent(Failure failure) {
  return failure == Failure::kNotSent || failure == Failure::kNoTunnels;
}

}  // namespace

void Relay::Answer::OnInformational(const http::ResponseHead& head, base::Instant now) {
  Relay& relay = relay_;
  relay.moved_ = now;
  if (head.status != 100) return relay.client_.SendInformational(head);
  // A 100 is passed on only to a client that asked for it, and once.
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
  // The proxy's fields replace the upstream's fields of the same name.
  for (const auto [name, value] : relay.response_fields_) head.fields.Remove(name);
  for (const auto [name, value] : relay.response_fields_) head.fields.Add(name, value);
  if (relay.context_.options.adds_date && !head.fields.Find("Date")) {
    const auto date = http::Date(base::TimeOfDay(relay.context_.options.clock, now));
    head.fields.Add("Date", {date.data(), date.size()});
  }
  if (relay.leaves_out_content_) RemoveContent(head);
  const bool tunnel = head.body.kind == http::BodyLength::Kind::kTunnel;
  if (tunnel && !relay.websocket_.Answer(head.fields)) return relay.FailInvalid(now);
  relay.LeavePool(tunnel                   ? Left::kUnasked
                  : IsFailure(head.status) ? Left::kFailed
                                           : Left::kAnswered,
                  now);
  relay.TellHead(head, now);
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
    // The upstream refused the tunnel, so the bytes of the tunnel are dropped.
    relay.end_sent_ = true;
    relay.upstream_->SendEnd({});
  }
  relay.ForgetRequest();
  relay.SetTimeout();
}

void Relay::TellHead(const http::ResponseHead& head, base::Instant now) {
  status_ = head.status;
  rule::AnswerStatus status{.http = status_};
  if (HasGrpcType(head.fields)) {
    // Clients read the status of the trailers, if there are any.
    grpc_status_of_head_ = ReadGrpcStatus(head.fields);
    if (head.body.is_empty()) status.grpc = grpc_status_of_head_;
    status.grpc_follows = !status.grpc;
  }
  status_told_ = status.grpc_follows ? Status::kFollows : Status::kTold;
  end_.TellStatus(status, now);
}

void Relay::TellTrailers(const http::Fields& trailers, base::Instant now) {
  if (status_told_ != Status::kFollows) return;
  std::optional<uint32_t> status = ReadGrpcStatus(trailers);
  if (!status) status = grpc_status_of_head_;
  if (!status) return;
  status_told_ = Status::kTold;
  end_.TellStatus({.http = status_, .grpc = status}, now);
}

void Relay::BeginTunnel() {
  context_.counters.tunnels.Add();
  ReleaseBody();
  ForgetRequest();
  SetTimeout();
}

// Once the answer has begun, the request may last as long as the answer.
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
  relay.upstream_uncredited_ += bytes.size();
  if (relay.leaves_out_content_) return relay.CreditUpstream();
  relay.Count(relay.sizes_.response, bytes.size(), now);
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
  relay.TellTrailers(trailers, now);
  relay.client_.SendEnd(relay.leaves_out_content_ ? http::Fields() : trailers);
  if (relay.stage_ == Stage::kTunnel) {
    relay.answer_ended_ = true;
    if (!relay.end_sent_) return;
  }
  relay.LeavePlace(Ended::kWell, now);
  relay.Finish(RelayOutcome::kAnswered, now);
}

bool Relay::MayTryAgain(Failure failure) const {
  if (stage_ != Stage::kAsked || attempts_ >= context_.options.attempts_max) return false;
  if (IsNotSent(failure)) return body_kept_;
  return failure == Failure::kNoAnswer && place_->reused() && !tried_after_no_answer_ &&
         IsIdempotent(head_.method) && head_.body.is_empty();
}

void Relay::Answer::OnFailed(Failure failure, std::string_view /*detail*/, base::Instant now) {
  Relay& relay = relay_;
  relay.upstream_ = nullptr;
  const bool again = relay.MayTryAgain(failure);
  if (IsNotSent(failure)) relay.was_sent_ = false;
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
  if (relay.stage_ != Stage::kAsked) return relay.CutShort(RelayOutcome::kCutShort, now);
  if (failure == Failure::kInvalid) return relay.FailInvalid(now);
  if (failure == Failure::kNoTunnels) {
    return relay.Fail({.outcome = RelayOutcome::kUnsuitable,
                       .status = 501,
                       .detail = "the upstream takes no tunnels over HTTP/2 (RFC 8441)",
                       .error = "proxy_configuration_error"},
                      Ended::kNotBegun, now);
  }
  relay.Fail({.outcome = RelayOutcome::kBroken,
              .status = 502,
              .detail = "the upstream closed the connection before it answered",
              .error = "connection_terminated"},
             Ended::kFailed, now);
}

void Relay::FailInvalid(base::Instant now) {
  Fail({.outcome = RelayOutcome::kBroken,
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
