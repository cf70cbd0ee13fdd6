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
  while (!closing_ && (Step(now) || calls_again_)) {
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
  using For = Patience::For;
  const Patience patience = this->patience();
  const bool waits = patience.what == For::kAnswer || patience.what == For::kHeldAnswer;
  wait_.Report(waits, now_, progress);
  if (waits) progress.waiting_since = patience.since;
  progress.streaming = awaits_room_ || (open_ && !waits && patience.what != For::kRequest);
  progress.mid_request =
      patience.what == For::kRequest || (!open_ && !awaits_room_ && rest_bytes_ > 0);
  // The rest of the input waits for the receiver, or for the end of the exchange.
  progress.stop_reading = (open_ || awaits_room_) && (rest_bytes_ > 0 || room() == 0);
  progress.ends_with_peer = progress.stop_reading && may_be_abandoned();
  progress.finish_writing =
      open_ && incoming_ == Incoming::kTunnel && outgoing_ == Outgoing::kEnded;
  // If the system takes all output at once, there is no call of OnUnsent; so ask to be called
  // again, to tell the receiver or to read further.
  progress.more = !closing_ && unsent_ == 0 && (is_full_ || awaits_room_);
  return progress;
}

bool ServerSession::Step(base::Instant now) {
  if (is_full_ && unsent_bytes() < kWindowBytes) {
    is_full_ = false;
    if (open_ && outgoing_ != Outgoing::kEnded && outgoing_ != Outgoing::kAborted)
      receiver_->OnWritable(now);
  }
  if (std::exchange(calls_again_, false) && open_) {
    receiver_->OnCalledAgain(now);
    return true;
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
  head_.target.clear();
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
                           .scheme = peer_.encrypted ? "https" : "http",
                           .never_nominated = options_.never_nominated,
                           .keeps_nominated = options_.keeps_nominated};
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
  receiver_ = application_.OnRequest(std::move(head_), peer_, *this, now);
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
  calls_again_ = false;
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

bool ServerSession::may_be_abandoned() const {
  if (!open_) return false;
  const Patience::For what = patience().what;
  if (what == Patience::For::kHeldAnswer || what == Patience::For::kNothing) return true;
  const bool has_request = incoming_ == Incoming::kEnded || incoming_ == Incoming::kUpgrade;
  return options_.cancels_abandoned && has_request && outgoing_ == Outgoing::kHead;
}

void ServerSession::OnDrain() {
  draining_ = true;
  if (open_) receiver_->OnDrain(now_);
}

bool ServerSession::OnInputEnd(base::Instant now) {
  now_ = now;
  input_ended_ = true;
  if (may_be_abandoned()) {
    Close(now);
    return false;
  }
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
      WriteProblem({408, "the request took too long", "send all of it at once"}, false, now);
    } else {
      WriteProblem({503, "the server's buffers are full of unfinished requests",
                    "try again later, or send smaller requests"},
                   false, now);
    }
  }
  output_ = nullptr;
  Close(now);
}

void ServerSession::Refuse(const Refusal& refusal, base::Instant now) {
  refused_ = true;
  const bool of_head = !open_;
  const bool can_speak = of_head || outgoing_ == Outgoing::kHead;
  Close(now);
  if (can_speak) WriteProblem(refusal, of_head, now);
}

void ServerSession::WriteProblem(const Refusal& refusal, bool of_head, base::Instant now) {
  ResponseHead answer;
  std::string body;
  const bool knows_target = of_head && !head_.target.empty();
  if (!knows_target || !application_.AnswerRefusedHead(head_, peer_, refusal, answer, body, now)) {
    http::Response problem;
    AnswerProblem(refusal.status, refusal.detail, refusal.hint, problem);
    const auto date = Date(base::TimeOfDay(options_.clock, now));
    answer.status = refusal.status;
    answer.fields.Add("Date", {date.data(), date.size()});
    answer.fields.Add("Content-Type", "application/problem+json");
    body = std::move(problem.body);
  }
  const BodyLength length{.kind = BodyLength::Kind::kSized, .bytes = body.size()};
  WriteResponseHead(answer.status, answer.fields, {.length = &length, .connection = "close"},
                    out());
  if (!head_only_) out().append(body);
}

void ServerSession::CallAgain() {
  calls_again_ = true;
  Wake();
}

void ServerSession::Wake() {
  if (output_ == nullptr && !closing_ && wake_) wake_();
}

}  // namespace headgate::http::http1
