#include "headgate/http/http2/server_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/http/http2/field_list.h"
#include "headgate/http/http2/server_session.h"

namespace headgate::http::http2 {
namespace {

// Whether the status or the method excludes a body.
bool HasBody(const ResponseHead& head, bool answers_head) {
  if (answers_head || head.status == 204 || head.status == 304) return false;
  if (head.body.kind == BodyLength::Kind::kSized) return head.body.bytes > 0;
  return head.body.kind != BodyLength::Kind::kNone;
}

}  // namespace

void ServerStream::SendInformational(const ResponseHead& head) {
  HEADGATE_CHECK(!answered_);
  if (!writable()) return;
  const std::string status = std::to_string(head.status);
  FieldList fields;
  fields.Add(":status", status);
  fields.Add(head.fields);
  session_.endpoint_.SubmitInformational(id_, fields);
  session_.Wake();
}

void ServerStream::SendHead(const ResponseHead& head) {
  HEADGATE_CHECK(!answered_);
  answered_ = true;
  tunnel_ = head.body.kind == BodyLength::Kind::kTunnel;
  HEADGATE_CHECK(!tunnel_ || wants_tunnel_);
  if (!writable()) return;
  bodiless_ = !HasBody(head, is_head_);
  body_.Begin(bodiless_ ? BodyLength{} : head.body);
  // 101 does not exist here (RFC 8441, 5).
  const std::string status = std::to_string(tunnel_ ? 200 : head.status);
  const std::string length = std::to_string(head.body.bytes);
  FieldList fields;
  fields.Add(":status", status);
  fields.Add(head.fields);
  if (head.body.kind == BodyLength::Kind::kSized && head.status != 204)
    fields.Add("content-length", length);
  session_.endpoint_.SubmitHead(id_, fields, bodiless_ ? nullptr : &body_);
  if (wants_tunnel_) session_.ready_.push_back(id_);
  session_.Wake();
}

void ServerStream::SendData(std::string_view bytes) {
  HEADGATE_CHECK(answered_ && !ended_);
  if (!writable() || bodiless_ || bytes.empty()) return;
  body_.Append(bytes);
  session_.endpoint_.Resume(id_);
  session_.Wake();
}

void ServerStream::SendEnd(const Fields& trailers) {
  HEADGATE_CHECK(answered_ && !ended_);
  ended_ = true;
  if (!writable() || bodiless_) return;
  if (!body_.End(trailers)) return Abort();
  session_.endpoint_.Resume(id_);
  session_.Wake();
}

void ServerStream::Abort() {
  if (!writable() || end_sent_) return;
  aborted_ = true;
  body_.Discard();
  session_.endpoint_.Reset(id_, ErrorCode::kInternalError);
  session_.Wake();
}

void ServerStream::CallAgain() {
  if (closed_ || std::exchange(calls_again_, true)) return;
  session_.ready_.push_back(id_);
  session_.Wake();
}

std::unique_ptr<ConnectionState>& ServerStream::connection_state() {
  return session_.connection_state_;
}

void ServerStream::Consumed(size_t bytes) {
  HEADGATE_CHECK(bytes <= buffered_);
  buffered_ -= bytes;
  session_.buffered_ -= bytes;
  if (closed_) return;
  session_.endpoint_.Consume(id_, bytes);
  session_.Wake();
}

}  // namespace headgate::http::http2
