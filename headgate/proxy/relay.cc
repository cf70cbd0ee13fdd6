// The client's side of a relay, its end and its timeouts; relay_answer.cc has the upstream's side.
// A relay goes through the stages waiting (for a place), asked, answering, and perhaps tunnel;
// every path ends in Finish, exactly once. Invariant: bytes are credited to a side only when the
// other side has room, so at most a window is buffered for each direction.
#include "headgate/proxy/relay.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/time_of_day.h"
#include "headgate/proxy/grpc.h"

namespace headgate::proxy {
namespace {

using http::BodyLength;
using http::kWindowBytes;

constexpr std::string_view kGrpcTimeout = "grpc-timeout";

// The deadline of a gRPC call; absent if it has none.
std::optional<base::Instant> DeadlineOf(const http::RequestHead& head, base::Instant now) {
  const auto text = head.fields.Find(kGrpcTimeout);
  const auto timeout = text ? ParseGrpcTimeout(*text) : std::nullopt;
  if (!timeout) return std::nullopt;
  return now + std::min(*timeout, base::kInstantMax - now);
}

size_t BytesOf(const http::RequestHead& head) {
  size_t bytes = head.target.size();
  for (const auto [name, value] : head.fields) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

Relay::Relay(const RelayContext& context, std::optional<uint64_t> client_key,
             http::RequestHead head, http::Fields response_fields, http::ServerExchange& client,
             base::Instant now)
    : Places::Waiter(client_key),
      context_(context),
      head_(std::move(head)),
      head_bytes_(BytesOf(head_)),
      response_fields_(std::move(response_fields)),
      client_(client),
      grpc_(IsGrpc(head_)),
      began_(now),
      moved_(now) {
  if (grpc_) deadline_ = DeadlineOf(head_, now);
  context_.counters.begun.Add();
}

// The server's session destroys a relay only when its exchange has ended.
Relay::~Relay() {
  if (stage_ == Stage::kDone) return;
  GiveUpUpstream(Ended::kCancelled, moved_);
  Finish(RelayOutcome::kClientGone, moved_);
}

void Relay::Begin(base::Instant now) {
  TakePlace(now);
  SetTimeout();
}

void Relay::TakePlace(base::Instant now) {
  ++attempts_;
  stage_ = Stage::kWaiting;
  asked_ = now;
  const auto [place, refused] = context_.places.Take(*this, now);
  if (place != nullptr) return OnPlace(*place, now);
  if (refused) OnNoPlace(*refused, "", now);
}

void Relay::OnPlace(Place& place, base::Instant now) {
  place_ = &place;
  if (grpc_ && !place.speaks_http2()) {
    LeavePlace(Ended::kNotBegun, now);
    return Fail({.outcome = RelayOutcome::kUnsuitable,
                 .status = 501,
                 .detail = "the upstream does not speak HTTP/2, which gRPC needs",
                 .error = "proxy_configuration_error"},
                Ended::kNotBegun, now);
  }
  if (deadline_) {
    // The time in the queue counts.
    head_.fields.Remove(kGrpcTimeout);
    head_.fields.Add(kGrpcTimeout, GrpcTimeout(*deadline_ - now));
  }
  if (IsWebSocket(head_)) websocket_.Ask(place.speaks_http2(), context_.random, head_);
  stage_ = Stage::kAsked;
  asked_ = moved_ = now;
  // Another attempt sends the kept body from its beginning.
  body_sent_ = 0;
  end_sent_ = false;
  holds_for_continue_ = head_.expects_continue;
  was_sent_ = true;
  upstream_ = &place.session().Begin(head_, answer_, now);
  if (!holds_body()) ReleaseBody();
  SetTimeout();
}

void Relay::OnNoPlace(NoPlace why, std::string_view /*detail*/, base::Instant now) {
  switch (why) {
    case NoPlace::kRefused:
      return Fail({.outcome = RelayOutcome::kUnreachable,
                   .status = 502,
                   .detail = "the upstream cannot be reached",
                   .error = "connection_refused"},
                  Ended::kNotBegun, now);
    case NoPlace::kTimeout:
      return Fail({.outcome = RelayOutcome::kUnreachable,
                   .status = 504,
                   .detail = "the upstream did not accept a connection in time",
                   .error = "connection_timeout"},
                  Ended::kNotBegun, now);
    case NoPlace::kUntrusted:
      return Fail({.outcome = RelayOutcome::kUnreachable,
                   .status = 502,
                   .detail = "the certificate of the upstream is not trusted",
                   .error = "tls_certificate_error"},
                  Ended::kNotBegun, now);
    case NoPlace::kTlsFailed:
      return Fail({.outcome = RelayOutcome::kUnreachable,
                   .status = 502,
                   .detail = "the TLS handshake with the upstream failed",
                   .error = "tls_protocol_error"},
                  Ended::kNotBegun, now);
    case NoPlace::kQueueFull:
      return Fail({.outcome = RelayOutcome::kNoPlace,
                   .status = 503,
                   .detail = "too many requests wait for a connection to the upstream",
                   .error = "connection_limit_reached"},
                  Ended::kNotBegun, now);
    case NoPlace::kClosed:
      return Fail({.outcome = RelayOutcome::kNoPlace,
                   .status = 503,
                   .detail = "the proxy shuts down",
                   .error = "destination_unavailable"},
                  Ended::kNotBegun, now);
  }
}

// ---- The client's side

void Relay::OnData(std::string_view bytes, base::Instant now) {
  moved_ = now;
  if (stage_ == Stage::kDone) return client_.Consumed(bytes.size());
  Count(sizes_.request, bytes.size(), now);
  client_uncredited_ += bytes.size();
  // Before the request is sent, its whole body so far is kept. It is at most a window, because it
  // is not credited.
  if (stage_ == Stage::kTunnel || (upstream_ != nullptr && !holds_body())) {
    SendBody(bytes);
  } else {
    body_.append(bytes);
  }
}

void Relay::SendBody(std::string_view bytes) {
  // The body is kept only as long as another attempt is possible: before the answer, and within the
  // bound.
  const bool room = body_.size() + bytes.size() <= kReplayBytesMax;
  if (stage_ == Stage::kAsked && body_kept_ && room) {
    body_.append(bytes);
    body_sent_ = body_.size();
  } else {
    body_kept_ = false;
    body_.clear();
  }
  upstream_->SendData(bytes);
  CreditClient();
}

// Sends the part of the body that was received before the request could be sent.
void Relay::ReleaseBody() {
  if (body_sent_ < body_.size()) {
    upstream_->SendData(std::string_view(body_).substr(body_sent_));
    body_sent_ = body_.size();
    CreditClient();
  }
  EndRequest();
}

void Relay::EndRequest() {
  // Called whenever one of the conditions may have come true: the end was received, and everything
  // before it was sent.
  if (!request_ended_ || end_sent_ || upstream_ == nullptr) return;
  end_sent_ = true;
  upstream_->SendEnd(trailers_);
}

void Relay::CreditClient() {
  // The upstream is slower than the client: without credit, the client stops sending.
  if (client_uncredited_ == 0 || upstream_->unsent_bytes() >= kWindowBytes) return;
  client_.Consumed(std::exchange(client_uncredited_, 0));
}

void Relay::OnEnd(const http::Fields& trailers, base::Instant now) {
  moved_ = now;
  request_ended_ = true;
  if (stage_ == Stage::kDone) return;
  trailers_ = trailers;
  if (stage_ == Stage::kTunnel) {
    EndRequest();
    // The upstream's direction has ended already, so the upstream's exchange ends with this call.
    if (answer_ended_) {
      LeavePlace(Ended::kWell, now);
      Finish(RelayOutcome::kAnswered, now);
    }
    return;
  }
  if (upstream_ != nullptr && !holds_body()) EndRequest();
  // The request is complete, so the time for the answer begins.
  SetTimeout();
}

void Relay::OnAbort(base::Instant now) {
  if (stage_ == Stage::kDone) return;
  TakeBackUnsent();
  GiveUpUpstream(Ended::kCancelled, now);
  Finish(client_.request_is_malformed() ? RelayOutcome::kMalformed : RelayOutcome::kClientGone,
         now);
}

void Relay::OnWritable(base::Instant now) {
  moved_ = now;
  if (upstream_ != nullptr) CreditUpstream();
}

// A head can be far larger than the bytes that the client sent for it (HPACK), so it counts. The
// client's session counts the data that is not credited.
size_t Relay::HeldBytes() const {
  const size_t held = body_.size() + (upstream_ != nullptr ? upstream_->unsent_bytes() : 0);
  return head_bytes_ + held - std::min(held, client_uncredited_);
}

// ---- The end

void Relay::LeavePlace(Ended ended, base::Instant now) {
  upstream_ = nullptr;
  upstream_uncredited_ = 0;
  if (place_ != nullptr) std::exchange(place_, nullptr)->Leave(*this, ended, now);
}

void Relay::GiveUpUpstream(Ended ended, base::Instant now) {
  if (place_ == nullptr) return context_.places.Forget(*this);
  // The exchange is cancelled before its place is left, because the place may go to another request
  // at once.
  if (upstream_ != nullptr) upstream_->Cancel();
  LeavePlace(ended, now);
}

void Relay::Fail(const FailedAnswer& answer, Ended ended, base::Instant now) {
  if (place_ != nullptr) GiveUpUpstream(ended, now);
  // All reasons for 503 are temporary: a full queue, or a process that restarts.
  if (answer.status == 503) response_fields_.Add("Retry-After", "1");
  SendOwnAnswer(head_,
                {.status = answer.status,
                 .detail = answer.detail,
                 .error = context_.options.says_reason ? answer.error : std::string_view(),
                 .proxy = context_.options.name,
                 .fields = &response_fields_,
                 .cors = &context_.options.cors},
                client_, base::TimeOfDay(context_.options.clock, now));
  Finish(answer.outcome, now);
}

// A gRPC client gets an error status in the trailers; otherwise it would take the end of the
// messages for success.
void Relay::CutShort(RelayOutcome outcome, base::Instant now) {
  if (grpc_ && may_have_trailers_) {
    http::Fields trailers;
    trailers.Add("grpc-status",
                 std::to_string(static_cast<unsigned>(outcome == RelayOutcome::kTooSlow
                                                          ? GrpcStatus::kDeadlineExceeded
                                                          : GrpcStatus::kUnavailable)));
    client_.SendEnd(trailers);
  } else {
    TakeBackUnsent();
    client_.Abort();
  }
  Finish(outcome, now);
}

void Relay::TakeBackUnsent() {
  sizes_.response -= std::min<uint64_t>(sizes_.response, client_.unsent_bytes());
}

void Relay::LeavePool(Left how, base::Instant now) {
  if (std::exchange(in_pool_, false)) {
    context_.admission.OnLeft(
        {.number = number_, .how = how, .was_sent = was_sent_, .sent_at = asked_}, now);
  }
}

void Relay::Finish(RelayOutcome outcome, base::Instant now) {
  HEADGATE_CHECK(place_ == nullptr && stage_ != Stage::kDone);
  stage_ = Stage::kDone;
  TickWheel::Cancel(*this);
  context_.counters.Add(outcome);
  // Only failures of the upstream count against it; a client that leaves says nothing about it.
  const bool failed = outcome == RelayOutcome::kUnreachable || outcome == RelayOutcome::kBroken ||
                      (outcome == RelayOutcome::kTooSlow && was_sent_);
  LeavePool(failed ? Left::kFailed : Left::kUnasked, now);
  if (was_sent_ && status_told_ != Status::kTold) end_.TellUnanswered(now);
  end_.Tell(sizes_, now);
  body_.clear();
  // The rest of the request is received and dropped, so its bytes must be credited, or the
  // connection stalls for its other exchanges.
  if (client_uncredited_ > 0 && outcome != RelayOutcome::kClientGone &&
      outcome != RelayOutcome::kMalformed)
    client_.Consumed(std::exchange(client_uncredited_, 0));
}

// ---- Timeouts

base::Instant Relay::Due() const {
  const RelayOptions& options = context_.options;
  const auto due = [&] {
    switch (stage_) {
      case Stage::kWaiting:
        return asked_ + options.queue_timeout;
      case Stage::kAsked:
        if (holds_for_continue_) return asked_ + options.continue_timeout;
        return moved_ + (end_sent_ ? options.answer_timeout : options.idle_timeout);
      case Stage::kAnswering:
        return moved_ + options.idle_timeout;
      case Stage::kTunnel:
        return moved_ + options.tunnel_idle_timeout;
      case Stage::kDone:
        break;
    }
    return base::kInstantMax;
  }();
  return deadline_ ? std::min(due, *deadline_) : due;
}

// The timer is not moved to a later time. When it fires too early, it is set again; so most changes
// cost nothing.
void Relay::SetTimeout() {
  if (stage_ == Stage::kDone) return;
  const base::Instant due = Due();
  if (is_set() && timeout_set_ <= due) return;
  timeout_set_ = due;
  context_.wheel.Set(*this, due);
}

void Relay::OnTick(base::Instant now) {
  if (Due() <= now) OnTimeout(now);
  SetTimeout();
}

void Relay::OnTimeout(base::Instant now) {
  const bool answering = stage_ == Stage::kAnswering || stage_ == Stage::kTunnel;
  if (deadline_ && *deadline_ <= now) {
    if (!answering) return FailAtDeadline(now);
    GiveUpUpstream(Ended::kCancelled, now);
    return CutShort(RelayOutcome::kTooSlow, now);
  }
  if (stage_ == Stage::kWaiting) return FailInQueue(now);
  if (stage_ == Stage::kAsked) return OnAnswerTimeout(now);
  // A client that reads nothing is not the upstream's fault; and a tunnel may be silent.
  const bool client_is_slow = client_.unsent_bytes() >= kWindowBytes;
  const bool blameless = client_is_slow || stage_ == Stage::kTunnel;
  GiveUpUpstream(blameless ? Ended::kCancelled : Ended::kTooSlow, now);
  CutShort(client_is_slow ? RelayOutcome::kSlowReader : RelayOutcome::kCutShort, now);
}

void Relay::OnAnswerTimeout(base::Instant now) {
  if (holds_for_continue_) {
    // The upstream may not know Expect. The client may wait for 100 without a bound.
    holds_for_continue_ = false;
    if (!std::exchange(continue_sent_, true) && body_.empty() && !request_ended_)
      client_.SendInformational({.status = 100});
    return ReleaseBody();
  }
  // The upstream has room, but the request is incomplete: the client is the slow side.
  if (!end_sent_ && upstream_->unsent_bytes() < kWindowBytes) {
    return Fail({.outcome = RelayOutcome::kSlowClient,
                 .status = 408,
                 .detail = "the rest of the request did not come in time",
                 .error = ""},
                Ended::kCancelled, now);
  }
  Fail({.outcome = RelayOutcome::kTooSlow,
        .status = 504,
        .detail = "the upstream did not answer in time",
        .error = "http_response_timeout"},
       Ended::kTooSlow, now);
}

void Relay::FailAtDeadline(base::Instant now) {
  if (place_ == nullptr) context_.places.Forget(*this);
  Fail({.outcome = RelayOutcome::kTooSlow,
        .status = 504,
        .detail = "the deadline of the call has passed",
        .error = "http_response_timeout"},
       Ended::kCancelled, now);
}

void Relay::FailInQueue(base::Instant now) {
  context_.places.Forget(*this);
  Fail({.outcome = RelayOutcome::kNoPlace,
        .status = 503,
        .detail = "no connection to the upstream became free in time",
        .error = "connection_limit_reached"},
       Ended::kNotBegun, now);
}

}  // namespace headgate::proxy
