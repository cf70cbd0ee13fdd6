#include "headgate/http/http1/body_reader.h"

#include <algorithm>

namespace headgate::http::http1 {

void BodyReader::Begin(BodyFraming framing, uint64_t bytes) {
  framing_ = framing;
  left_ = framing == BodyFraming::kSized ? bytes : 0;
  done_ = framing == BodyFraming::kNone || (framing == BodyFraming::kSized && bytes == 0);
  trailers_.Clear();
  if (framing == BodyFraming::kChunked) chunks_.Begin(&trailers_);
}

BodyReader::Part BodyReader::Take(std::string_view bytes, size_t data_bytes_max) {
  Part part;
  switch (framing_) {
    case BodyFraming::kNone:
      break;
    case BodyFraming::kSized:
      part.data = bytes.substr(0, static_cast<size_t>(std::min<uint64_t>(data_bytes_max, left_)));
      part.taken = part.data.size();
      left_ -= part.taken;
      done_ = left_ == 0;
      break;
    case BodyFraming::kChunked: {
      const Chunks::Piece piece = chunks_.TakePiece(bytes, data_bytes_max);
      part.data = piece.data;
      part.taken = piece.taken;
      part.refusal = piece.refusal;
      done_ = piece.done;
      break;
    }
    case BodyFraming::kUntilEnd:
      part.data = bytes.substr(0, data_bytes_max);
      part.taken = part.data.size();
      break;
  }
  part.done = done_;
  return part;
}

}  // namespace headgate::http::http1
