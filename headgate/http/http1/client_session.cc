#include "headgate/http/http1/client_session.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/http/bounds.h"
#include "headgate/http/fields.h"
#include "headgate/http/shared_rules.h"

namespace headgate::http::http1 {
namespace {

void Shrink(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptBytesMax) std::string().swap(buffer);
}

// A violation that HeadScan found; its words are about requests.
std::string_view DetailOf(const Refusal& violation) {
  if (violation.status == 414) return "the status line is too long";
  if (violation.status == 431) return "the head of the response is too long";
  return violation.detail;
}

}  // namespace

ClientSession::ClientSession(const Bounds& bounds) : bounds_(bounds), reader_(bounds) {}

ClientExchange& ClientSession::Begin(const RequestHead& head, ResponseReceiver& receiver,
                                     base::Instant /*now*/) {
  HEADGATE_CHECK(free_places() > 0 && head.method != "CONNECT");
  receiver_ = &receiver;
  outgoing_ = head.protocol.empty() ? Outgoing::kBody : Outgoing::kEnded;
  incoming_ = Incoming::kHead;
  head_only_ = head.method == "HEAD";
  protocol_ = head.protocol;
  keep_alive_ = is_full_ = answered_ = short_body_ = false;
  informational_count_ = 0;
  uncredited_ = 0;
  written_ = 0;
  const size_t size_before = output_.size();
  WriteRequestHead(head, writer_, output_);
  NoteOutput(size_before);
  return *this;
}

void ClientSession::SendData(std::string_view bytes) {
  if (!open() || short_body_) return;
  HEADGATE_CHECK(outgoing_ != Outgoing::kEnded || bytes.empty());
  const size_t size_before = output_.size();
  writer_.Write(bytes, output_);
  NoteOutput(size_before);
}

void ClientSession::SendEnd(const Fields& trailers) {
  if (!open() || outgoing_ == Outgoing::kEnded) return;
  const size_t size_before = output_.size();
  const bool tunnel = outgoing_ == Outgoing::kTunnel;
  outgoing_ = Outgoing::kEnded;
  short_body_ = !writer_.End(&trailers, output_);
  // The server learns from the end of the connection that the body is incomplete.
  if (short_body_ || tunnel) finished_ = output_ended_ = true;
  if (tunnel && incoming_ == Incoming::kEnded) Release();
  NoteOutput(size_before);
  if (output_ended_ && wake_) wake_();
}

void ClientSession::Cancel() {
  if (!open()) return;
  finished_ = true;
  output_.clear();
  Release();
  if (wake_) wake_();
}

void ClientSession::Consumed(size_t bytes) {
  HEADGATE_CHECK(bytes <= uncredited_);
  uncredited_ -= bytes;
  UpdateWantsInput();
}

// Reads on only when half of the window is free, so that a receiver that consumes little by little
// costs few calls.
void ClientSession::UpdateWantsInput() {
  const bool wants =
      uncredited_ < kWindowBytes && (wants_input_ || uncredited_ <= kWindowBytes / 2);
  if (std::exchange(wants_input_, wants) != wants && wake_) wake_();
}

void ClientSession::NoteOutput(size_t size_before) {
  written_ += output_.size() - size_before;
  if (unsent_bytes() >= kWindowBytes) is_full_ = true;
  if (size_before == 0 && !output_.empty() && wake_) wake_();
}

void ClientSession::OnUnsent(size_t bytes, base::Instant now) {
  unsent_ = bytes;
  Shrink(output_);
  if (!is_full_ || unsent_bytes() >= kWindowBytes) return;
  is_full_ = false;
  if (open() && outgoing_ != Outgoing::kEnded) receiver_->OnWritable(now);
}

void ClientSession::OnBytes(std::string_view bytes, base::Instant now) {
  if (bytes.empty()) return;
  // These bytes answer no request: an answer to a request that was not made, or an error for a
  // connection that waited for too long.
  if (!open()) finished_ = true;
  if (open() && nothing_sent())
    return Fail(Failure::kNotSent, "the server answered before it had a request", now);
  answered_ = true;
  bool more = true;
  while (open() && more) {
    switch (incoming_) {
      case Incoming::kHead:
        more = TakeHead(bytes, now);
        break;
      case Incoming::kBody:
      case Incoming::kTunnel:
        more = TakeBody(bytes, now);
        break;
      case Incoming::kEnded:
        return;
    }
  }
  if (open()) UpdateWantsInput();
}

bool ClientSession::TakeHead(std::string_view& bytes, base::Instant now) {
  // The scan needs the whole head in one piece; a head that arrives at once is not copied.
  const size_t kept = partial_head_.size();
  std::string_view head = bytes;
  if (kept > 0) {
    partial_head_.append(bytes);
    head = partial_head_;
  }
  const auto [head_size, violation] = scan_.Continue(head, bounds_);
  if (violation) {
    Fail(Failure::kInvalid, DetailOf(violation), now);
    return false;
  }
  if (head_size == 0) {
    if (kept == 0) partial_head_.assign(bytes);
    bytes = {};
    return false;
  }
  ResponseBody body;
  const Answered request{.head_only = head_only_, .protocol = protocol_};
  const Refusal refusal =
      ReadResponseHead(head.substr(0, head_size), request, bounds_, response_, body);
  bytes.remove_prefix(head_size - kept);
  partial_head_.clear();
  Shrink(partial_head_);
  if (refusal) {
    Fail(Failure::kInvalid, refusal.detail, now);
    return false;
  }
  if (response_.status < 200 && response_.status != 101) {
    if (++informational_count_ > kInformationalMax) {
      Fail(Failure::kInvalid, "too many informational responses", now);
      return false;
    }
    receiver_->OnInformational(response_, now);
    return !bytes.empty();
  }
  OnResponseHead(body, now);
  if (open() && reader_.done()) EndResponse(!bytes.empty(), now);
  return !bytes.empty();
}

void ClientSession::OnResponseHead(const ResponseBody& body, base::Instant now) {
  keep_alive_ = body.keep_alive;
  reader_.Begin(body.framing, body.bytes);
  incoming_ = Incoming::kBody;
  if (response_.body.kind == BodyLength::Kind::kTunnel) {
    finished_ = true;
    incoming_ = Incoming::kTunnel;
    outgoing_ = Outgoing::kTunnel;
    writer_.Begin(BodyWriter::Framing::kUntilEnd);
  }
  receiver_->OnHead(ResponseHead(response_), now);
}

bool ClientSession::TakeBody(std::string_view& bytes, base::Instant now) {
  const BodyReader::Part part = reader_.Take(bytes, bytes.size());
  bytes.remove_prefix(part.taken);
  if (part.refusal) {
    Fail(Failure::kTruncated, part.refusal.detail, now);
    return false;
  }
  if (!part.data.empty()) {
    uncredited_ += part.data.size();
    receiver_->OnData(part.data, now);
    if (!open()) return false;
  }
  if (part.done) EndResponse(!bytes.empty(), now);
  return !bytes.empty();
}

void ClientSession::EndResponse(bool beyond, base::Instant now) {
  for (const auto [name, value] : reader_.trailers()) {
    if (MayBeInTrailer(name, {})) continue;
    return Fail(Failure::kTruncated, "a field of the trailer may only be in the head", now);
  }
  incoming_ = Incoming::kEnded;
  const bool request_is_complete =
      outgoing_ == Outgoing::kEnded && !short_body_ && unsent_bytes() == 0;
  if (!keep_alive_ || beyond || !request_is_complete) finished_ = true;
  Release().OnEnd(reader_.trailers(), now);
}

void ClientSession::OnInputEnd(base::Instant now) {
  if (!open()) {
    finished_ = true;
  } else if (incoming_ == Incoming::kTunnel) {
    EndTunnelInput(now);
  } else if (incoming_ == Incoming::kBody && reader_.framing() == BodyFraming::kUntilEnd) {
    EndResponse(false, now);
  } else {
    OnBroken("the server closed the connection", now);
  }
}

void ClientSession::EndTunnelInput(base::Instant now) {
  incoming_ = Incoming::kEnded;
  ResponseReceiver& receiver = *receiver_;
  if (outgoing_ == Outgoing::kEnded) Release();
  receiver.OnEnd(kNoFields, now);
}

void ClientSession::OnBroken(std::string_view why, base::Instant now) {
  finished_ = true;
  if (!open()) return;
  Fail(answered_        ? Failure::kTruncated
       : nothing_sent() ? Failure::kNotSent
                        : Failure::kNoAnswer,
       why, now);
}

void ClientSession::Fail(Failure failure, std::string_view detail, base::Instant now) {
  finished_ = true;
  Release().OnFailed(failure, detail, now);
}

ResponseReceiver& ClientSession::Release() {
  uncredited_ = 0;
  wants_input_ = true;
  return *std::exchange(receiver_, nullptr);
}

}  // namespace headgate::http::http1
