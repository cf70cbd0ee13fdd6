#include "headgate/http/http1/server_session.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/time_of_day.h"
#include "headgate/http/bounds.h"
#include "headgate/http/date.h"
#include "headgate/http/fields.h"
#include "headgate/http/http1/request_head.h"
#include "headgate/http/problem.h"
#include "headgate/http/shared_rules.h"

namespace headgate::http::http1 {
namespace {

constexpr Refusal kTrailer{400, "a field of the trailer may only be in the head", kAmbiguous};

}  // namespace

ServerSession::ServerSession(Application& application, const ServerOptions& options, net::Peer peer)
    : application_(application),
      options_(options),
      peer_(std::move(peer)),
      reader_(options.bounds) {}

ServerSession::~ServerSession() {
  wake_ = nullptr;
  Close(now_);
}

ServerSession::Progress ServerSession::OnBytes(std::span<const char> input, std::string& output,
                                               base::Instant now) {
  now_ = now;
  rest_ = std::string_view(input.data(), input.size());
  output_begin_ = output.size();
  // A large output is not copied; a small one leaves the loop's buffer to the loop.
  if (output.empty() && pending_.size() > kKeptBytesMax) {
    output.swap(pending_);
  } else {
    output.append(pending_);
  }
  pending_.clear();
  output_ = &output;
  while (!closing_ && Step(now)) {
  }
  output_ = nullptr;
  // Without a call of OnUnsent, everything was sent at once.
  if (unsent_ > 0) unsent_ += output.size() - output_begin_;
  if (!open_ && pending_.capacity() > kKeptBytesMax) std::string().swap(pending_);
  return Report(input);
}

ServerSession::Progress ServerSession::Report(std::span<const char> input) {
  Progress progress;
  rest_bytes_ = closing_ ? 0 : rest_.size();
  progress.consumed = input.size() - rest_bytes_;
  rest_ = {};
  progress.answered = std::exchange(answered_, 0);
  progress.close = closing_;
  progress.protocol_error = refused_;
  progress.reset = closing_ && resets_;
  progress.streaming = open_ || awaits_room_;
  progress.mid_request = !progress.streaming && rest_bytes_ > 0;
  // The rest of the input waits for the receiver, or for the end of the exchange.
  progress.stop_reading = progress.streaming && (rest_bytes_ > 0 || room() == 0);
  progress.finish_writing =
      open_ && incoming_ == Incoming::kTunnel && outgoing_ == Outgoing::kEnded;
  // If everything is sent at once, the next call says so to the receiver, or reads on.
  progress.more = !closing_ && unsent_ == 0 && (is_full_ || awaits_room_);
  return progress;
}

bool ServerSession::Step(base::Instant now) {
  if (is_full_ && unsent_bytes() < kWindowBytes) {
    is_full_ = false;
    if (open_ && outgoing_ != Outgoing::kEnded && outgoing_ != Outgoing::kAborted)
      receiver_->OnWritable(now);
  }
  if (!open_) return TakeHead(now);
  const bool unwanted = outgoing_ == Outgoing::kEnded && incoming_ == Incoming::kBody;
  if (outgoing_ == Outgoing::kAborted || (unwanted && !request_arrived())) {
    Close(now);
    return false;
  }
  if (unwanted) {
    rest_.remove_prefix(static_cast<size_t>(reader_.left()));
    incoming_ = Incoming::kEnded;
    receiver_->OnAbort(now);
  }
  switch (incoming_) {
    case Incoming::kBody:
      return TakeBody(now);
    case Incoming::kUpgrade:
      return AnswerUpgrade(now);
    case Incoming::kTunnel:
      return TakeTunnel(now);
    case Incoming::kEnded:
      break;
  }
  if (outgoing_ != Outgoing::kEnded) return false;
  EndExchange();
  return true;
}

bool ServerSession::TakeHead(base::Instant now) {
  // A client that does not read its answers gets no further ones.
  awaits_room_ = unsent_bytes() >= kWindowBytes;
  if (awaits_room_) return false;
  if (!scan_.begun() && !skipped_empty_line_ && rest_.starts_with("\r\n")) {
    rest_.remove_prefix(2);  // RFC 9112, 2.2: an empty line before a request line is ignored
    skipped_empty_line_ = true;
  }
  head_only_ = rest_.starts_with("HEAD ");
  const auto [head_size, violation] = scan_.Continue(rest_, options_.bounds);
  if (violation) {
    Refuse(violation, now);
    return false;
  }
  if (head_size == 0) {
    if (input_ended_) Close(now);
    return false;
  }
  bool keep_alive = false;
  const RequestRules rules{.bounds = options_.bounds,
                           .scheme = options_.scheme,
                           .never_nominated = options_.never_nominated};
  if (const Refusal refusal =
          ReadRequestHead(rest_.substr(0, head_size), rules, head_, keep_alive)) {
    Refuse(refusal, now);
    return false;
  }
  rest_.remove_prefix(head_size);
  BeginExchange(keep_alive, now);
  return true;
}

void ServerSession::BeginExchange(bool keep_alive, base::Instant now) {
  open_ = true;
  skipped_empty_line_ = false;
  http11_ = head_.version == Version::kHttp11;
  accepts_trailers_ = head_.accepts_trailers;
  protocol_ = head_.protocol;
  last_ = !keep_alive;
  uncredited_ = 0;
  is_full_ = false;
  incoming_ = protocol_.empty() ? Incoming::kBody : Incoming::kUpgrade;
  outgoing_ = Outgoing::kHead;
  const BodyLength body = head_.body;
  reader_.Begin(body.kind == BodyLength::Kind::kUnsized ? BodyFraming::kChunked
                : body.kind == BodyLength::Kind::kSized ? BodyFraming::kSized
                                                        : BodyFraming::kNone,
                body.bytes);
  // A copy, so that `head_` keeps its memory for the next request.
  receiver_ = application_.OnRequest(RequestHead(head_), peer_, *this, now);
  HEADGATE_CHECK(receiver_ != nullptr);
  if (incoming_ == Incoming::kBody && reader_.done() && outgoing_ != Outgoing::kAborted)
    EndRequest(kNoFields, now);
}

bool ServerSession::TakeBody(base::Instant now) {
  const BodyReader::Part part = reader_.Take(rest_, room());
  rest_.remove_prefix(part.taken);
  if (part.refusal) {
    Refuse(part.refusal, now);
    return false;
  }
  if (!part.data.empty()) {
    uncredited_ += part.data.size();
    receiver_->OnData(part.data, now);
  }
  if (part.done) return EndBody(now);
  if (!part.data.empty()) return true;
  if (input_ended_ && rest_.empty()) Close(now);
  return false;
}

bool ServerSession::EndBody(base::Instant now) {
  for (const auto [name, value] : reader_.trailers()) {
    if (MayBeInTrailer(name, options_.never_nominated)) continue;
    Refuse(kTrailer, now);
    return false;
  }
  EndRequest(reader_.trailers(), now);
  return true;
}

void ServerSession::EndRequest(const Fields& trailers, base::Instant now) {
  incoming_ = Incoming::kEnded;
  receiver_->OnEnd(trailers, now);
}

bool ServerSession::AnswerUpgrade(base::Instant now) {
  if (outgoing_ == Outgoing::kHead) return false;
  if (reader_.framing() == BodyFraming::kUntilEnd) {
    incoming_ = Incoming::kTunnel;
  } else {
    EndRequest(kNoFields, now);
  }
  return true;
}

bool ServerSession::TakeTunnel(base::Instant now) {
  const BodyReader::Part part = reader_.Take(rest_, room());
  rest_.remove_prefix(part.taken);
  if (!part.data.empty()) {
    uncredited_ += part.data.size();
    receiver_->OnData(part.data, now);
    return true;
  }
  if (!input_ended_ || !rest_.empty()) return false;
  EndRequest(kNoFields, now);
  return true;
}

void ServerSession::EndExchange() {
  receiver_.reset();
  open_ = false;
  uncredited_ = 0;
  ++answered_;
  closing_ = last_;
}

void ServerSession::Close(base::Instant now) {
  closing_ = true;
  if (!std::exchange(open_, false)) return;
  const bool complete = incoming_ == Incoming::kEnded && outgoing_ == Outgoing::kEnded;
  if (outgoing_ == Outgoing::kEnded) ++answered_;
  if (!complete && outgoing_ != Outgoing::kAborted) receiver_->OnAbort(now);
  receiver_.reset();
}

bool ServerSession::request_arrived() const {
  switch (incoming_) {
    case Incoming::kBody:
      return reader_.framing() != BodyFraming::kChunked && reader_.left() <= rest_bytes();
    case Incoming::kUpgrade:
    case Incoming::kTunnel:
    case Incoming::kEnded:
      break;
  }
  return true;
}

void ServerSession::OnUnsent(size_t bytes, base::Instant now) {
  now_ = now;
  unsent_ = bytes;
  if ((is_full_ || awaits_room_) && unsent_bytes() < kWindowBytes) Wake();
}

bool ServerSession::OnInputEnd(base::Instant now) {
  now_ = now;
  input_ended_ = true;
  return open_ || rest_bytes_ > 0 || unsent_bytes() > 0;
}

size_t ServerSession::BufferedBytes() const {
  return pending_.capacity() + uncredited_ + (receiver_ != nullptr ? receiver_->HeldBytes() : 0);
}

void ServerSession::OnGivenUp(GivenUp why, std::string& output, base::Instant now) {
  if (why == GivenUp::kIdle) return Close(now);
  output_ = &output;
  output_begin_ = output.size();
  if (!open_ || outgoing_ == Outgoing::kHead) {
    if (why == GivenUp::kTooSlow) {
      WriteProblem({408, "the head of the request took too long", "send all of it at once"}, now);
    } else {
      WriteProblem({503, "the server's buffers are full of unfinished requests",
                    "try again later, or send smaller heads"},
                   now);
    }
  }
  output_ = nullptr;
  Close(now);
}

void ServerSession::Refuse(const Refusal& refusal, base::Instant now) {
  refused_ = true;
  const bool can_speak = !open_ || outgoing_ == Outgoing::kHead;
  Close(now);
  if (can_speak) WriteProblem(refusal, now);
}

void ServerSession::WriteProblem(const Refusal& refusal, base::Instant now) {
  http::Response problem;
  AnswerProblem(refusal.status, refusal.detail, refusal.hint, problem);
  const auto date = Date(base::TimeOfDay(options_.clock, now));
  Fields fields;
  fields.Add("Date", {date.data(), date.size()});
  fields.Add("Content-Type", "application/problem+json");
  const BodyLength length{.kind = BodyLength::Kind::kSized, .bytes = problem.body.size()};
  WriteResponseHead(refusal.status, fields, {.length = &length, .connection = "close"}, out());
  if (!head_only_) out().append(problem.body);
}

void ServerSession::Wake() {
  if (output_ == nullptr && !closing_ && wake_) wake_();
}

}  // namespace headgate::http::http1
