#include "headgate/http/http2/outgoing_body.h"

#include "headgate/base/check.h"
#include "headgate/http/exchange.h"

namespace headgate::http::http2 {

void OutgoingBody::Begin(const BodyLength& length) {
  unsized_ = length.kind == BodyLength::Kind::kUnsized;
  if (length.kind == BodyLength::Kind::kSized) missing_ = length.bytes;
}

void OutgoingBody::Append(std::string_view bytes) {
  HEADGATE_CHECK(!ended_);
  if (missing_) {
    HEADGATE_CHECK(bytes.size() <= *missing_);
    *missing_ -= bytes.size();
  }
  bytes_.append(bytes);
}

bool OutgoingBody::End(const Fields& trailers) {
  HEADGATE_CHECK(!ended_);
  ended_ = true;
  if (unsized_) trailers_ = trailers;
  return missing_.value_or(0) == 0;
}

void OutgoingBody::Discard() {
  std::string().swap(bytes_);
  taken_ = 0;
}

std::string_view OutgoingBody::Front(size_t bytes_max) const {
  return std::string_view(bytes_).substr(taken_, bytes_max);
}

bool OutgoingBody::Remove(size_t bytes) {
  const size_t before = size();
  taken_ += bytes;
  taken_in_all_ += bytes;
  if (taken_ == bytes_.size()) {
    bytes_.clear();
    taken_ = 0;
  } else if (taken_ >= bytes_.size() / 2) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  return before >= kWindowBytes && size() < kWindowBytes;
}

}  // namespace headgate::http::http2
