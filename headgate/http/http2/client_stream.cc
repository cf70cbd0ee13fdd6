#include "headgate/http/http2/client_stream.h"

#include "headgate/base/check.h"
#include "headgate/http/http2/client_session.h"

namespace headgate::http::http2 {

void ClientStream::SendData(std::string_view bytes) {
  HEADGATE_CHECK(!ended_);
  if (closed_ || bodiless_ || receiver_ == nullptr || bytes.empty()) return;
  body_.Append(bytes);
  session_.endpoint_.Resume(id_);
  session_.Wake();
}

void ClientStream::SendEnd(const Fields& trailers) {
  HEADGATE_CHECK(!ended_);
  ended_ = true;
  if (closed_ || bodiless_ || receiver_ == nullptr) return;
  if (body_.End(trailers)) {
    session_.endpoint_.Resume(id_);
  } else {
    short_request_ = true;
    session_.Refuse(*this, "the request ended before its length");
  }
  session_.Wake();
}

void ClientStream::Cancel() {
  if (session_.Detach(*this) == nullptr || closed_) return;
  body_.Discard();
  if (id_ != 0) {
    session_.Abandon(*this, ErrorCode::kCancel);
  } else {
    session_.Close(*this, Failure::kNotSent, {});
  }
  session_.Wake();
}

void ClientStream::Consumed(size_t bytes) {
  HEADGATE_CHECK(bytes <= buffered_);
  buffered_ -= bytes;
  if (closed_) return;
  session_.endpoint_.Consume(id_, bytes);
  session_.Wake();
}

}  // namespace headgate::http::http2
