// How a server's session sends the response of an exchange.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/http/http1/server_session.h"

namespace headgate::http::http1 {

using Kind = BodyLength::Kind;

void ServerSession::SendInformational(const ResponseHead& head) {
  if (!open_ || outgoing_ == Outgoing::kAborted || !http11_) return;
  HEADGATE_CHECK(outgoing_ == Outgoing::kHead);
  HEADGATE_CHECK(head.status >= 100 && head.status < 200 && head.status != 101);
  // A client that does not read its answers gets only status 100, because it may wait for that.
  if (head.status != 100 && unsent_bytes() >= kWindowBytes) return;
  WriteResponseHead(head.status, head.fields, {}, out());
  NoteOutput();
}

void ServerSession::SendHead(const ResponseHead& head) {
  if (!open_ || outgoing_ == Outgoing::kAborted) return;
  HEADGATE_CHECK(outgoing_ == Outgoing::kHead);
  if (head.body.kind == Kind::kTunnel) {
    HEADGATE_CHECK(incoming_ == Incoming::kUpgrade && head.status == 101);
    outgoing_ = Outgoing::kTunnel;
    last_ = true;
    reader_.Begin(BodyFraming::kUntilEnd, 0);
    writer_.Begin(BodyWriter::Framing::kUntilEnd);
    WriteResponseHead(head.status, head.fields, {.connection = "Upgrade", .upgrade = protocol_},
                      out());
    return NoteOutput();
  }
  HEADGATE_CHECK(head.status >= 200);
  outgoing_ = Outgoing::kBody;
  last_ = last_ || draining_ || head.closes || !request_arrived();

  BodyLength length = head.body;
  const bool has_length =
      head.status != 204 && (length.kind != Kind::kNone || (head.status != 304 && !head_only_));
  bool states_length = has_length;
  if (head_only_ || head.status == 204 || head.status == 304) {
    writer_.Begin(BodyWriter::Framing::kDropped);
    states_length = has_length && length.kind == Kind::kSized;
  } else if (length.kind != Kind::kUnsized) {
    writer_.Begin(BodyWriter::Framing::kSized, length.bytes);
  } else if (http11_) {
    writer_.Begin(BodyWriter::Framing::kChunked);
  } else {
    // For HTTP/1.0, only the end of the connection marks the end of such a body.
    writer_.Begin(BodyWriter::Framing::kUntilEnd);
    states_length = false;
    last_ = true;
  }
  const std::string_view connection = last_ ? "close" : http11_ ? "" : "keep-alive";
  WriteResponseHead(head.status, head.fields,
                    {.length = states_length ? &length : nullptr, .connection = connection}, out());
  NoteOutput();
}

void ServerSession::SendData(std::string_view bytes) {
  if (!open_ || outgoing_ == Outgoing::kAborted) return;
  HEADGATE_CHECK(outgoing_ == Outgoing::kBody || outgoing_ == Outgoing::kTunnel);
  writer_.Write(bytes, out());
  NoteOutput();
}

void ServerSession::SendEnd(const Fields& trailers) {
  if (!open_ || outgoing_ == Outgoing::kAborted) return;
  HEADGATE_CHECK(outgoing_ == Outgoing::kBody || outgoing_ == Outgoing::kTunnel);
  const bool complete = writer_.End(accepts_trailers_ ? &trailers : nullptr, out());
  outgoing_ = complete ? Outgoing::kEnded : Outgoing::kAborted;
  NoteOutput();
}

void ServerSession::Abort() {
  if (!open_) return;
  const bool begun = outgoing_ == Outgoing::kBody || outgoing_ == Outgoing::kTunnel;
  resets_ = resets_ || (begun && writer_.framing() == BodyWriter::Framing::kUntilEnd);
  outgoing_ = Outgoing::kAborted;
  Wake();
}

void ServerSession::Consumed(size_t bytes) {
  const bool was_blocked = rest_bytes() > 0 || room() == 0;
  HEADGATE_CHECK(bytes <= uncredited_);
  uncredited_ -= bytes;
  // In large steps, so that a receiver that consumes little by little costs few calls.
  if (was_blocked && uncredited_ <= kWindowBytes / 2) Wake();
}

size_t ServerSession::unsent_bytes() const {
  const size_t written = output_ != nullptr ? output_->size() - output_begin_ : pending_.size();
  return unsent_ + written;
}

void ServerSession::NoteOutput() {
  if (unsent_bytes() >= kWindowBytes) is_full_ = true;
  Wake();
}

}  // namespace headgate::http::http1
