#include "headgate/http/chunks.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/http/handler.h"
#include "headgate/http/shared_rules.h"
#include "headgate/http/token.h"

namespace headgate::http {
namespace {

constexpr uint32_t kSizeDigitsMax = 16;  // the digits of a 64-bit number

constexpr Refusal kMalformed{400, "the chunked body is malformed",
                             "a chunk is its size in hexadecimal digits, CR LF, the data, CR LF"};
constexpr Refusal kChunkLineEnd{400, "a line of the chunked body does not end with CR LF",
                                kAmbiguous};
constexpr Refusal kExtensionsTooLong{431, "the chunk extensions are too long",
                                     "send chunks without extensions"};
constexpr Refusal kTrailerTooLong{431, "the trailer is too long",
                                  "send the body without a trailer"};
constexpr Refusal kTooManyFields{431, "too many fields", "send the body without a trailer"};
constexpr Refusal kTrailerFolded{400, "a field is folded over several lines", kAmbiguous};
constexpr Refusal kMalformedField{400, "a field of the trailer is malformed",
                                  "a field is NAME: VALUE"};
constexpr Refusal kFieldOfTheHead{400, "a field of the trailer may only be in the head",
                                  kAmbiguous};

// Any character except line ends and other control characters; TAB is allowed.
bool IsFieldChar(char c) {
  const auto u = static_cast<unsigned char>(c);
  return c == '\t' || (u >= 0x20 && u != 0x7F);
}

}  // namespace

void Chunks::Begin(Fields* trailers) {
  trailers_ = trailers;
  state_ = State::kSize;
  digits_ = 0;
  left_ = 0;
  body_bytes_ = 0;
  extension_bytes_ = trailer_bytes_ = trailer_fields_ = 0;
  trailer_line_.clear();
}

Chunks::Progress Chunks::Take(std::string_view bytes, std::string& body) {
  Progress progress;
  while (progress.taken < bytes.size() && !progress.done && !progress.refusal) {
    const Piece piece = TakePiece(bytes.substr(progress.taken), bytes.size());
    body.append(piece.data);
    progress.taken += piece.taken;
    progress.done = piece.done;
    progress.refusal = piece.refusal;
  }
  return progress;
}

Chunks::Piece Chunks::TakePiece(std::string_view bytes, size_t data_bytes_max) {
  Piece piece;
  while (piece.taken < bytes.size() && state_ != State::kDone && !piece.refusal) {
    if (state_ != State::kData) {
      piece.refusal = TakeByte(bytes[piece.taken++]);
      continue;
    }
    piece.data =
        bytes.substr(piece.taken, static_cast<size_t>(std::min<uint64_t>(left_, data_bytes_max)));
    body_bytes_ += piece.data.size();
    left_ -= piece.data.size();
    piece.taken += piece.data.size();
    if (left_ == 0) state_ = State::kDataCr;
    break;
  }
  piece.done = state_ == State::kDone;
  return piece;
}

Refusal Chunks::TakeByte(char c) {
  switch (state_) {
    case State::kSize: {
      const int digit = base::HexValue(c);
      if (digit < 0) return EndSize(c);
      if (++digits_ > kSizeDigitsMax) return kMalformed;
      left_ = left_ << 4 | static_cast<uint64_t>(digit);
      return {};
    }
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeLf;
        return {};
      }
      if (c == '\n') return kChunkLineEnd;
      if (!IsFieldChar(c)) return kMalformed;
      ++extension_bytes_;
      return extension_bytes_ > bounds_.chunk_extra_bytes_max &&
                     extension_bytes_ - bounds_.chunk_extra_bytes_max > body_bytes_
                 ? kExtensionsTooLong
                 : Refusal{};
    case State::kSizeLf:
      if (c != '\n') return kChunkLineEnd;
      state_ = left_ > 0 ? State::kData : State::kTrailer;
      return {};
    case State::kDataCr:
      if (c == '\n') return kChunkLineEnd;
      if (c != '\r') return kMalformed;
      state_ = State::kDataLf;
      return {};
    case State::kDataLf:
      if (c != '\n') return kChunkLineEnd;
      state_ = State::kSize;
      digits_ = 0;
      return {};
    case State::kTrailer:
    case State::kTrailerLf:
      return TakeTrailerByte(c);
    case State::kData:
    case State::kDone:
      break;  // appended as a block, not byte by byte
  }
  return {};
}

// `c` is the byte after the digits of a chunk's size.
Refusal Chunks::EndSize(char c) {
  if (digits_ == 0) return c == '\n' ? kChunkLineEnd : kMalformed;
  if (c == '\n') return kChunkLineEnd;
  if (c != '\r' && c != ';') return kMalformed;
  if (left_ > bounds_.body_bytes_max - std::min<uint64_t>(bounds_.body_bytes_max, body_bytes_)) {
    return kBodyTooLarge;
  }
  state_ = c == ';' ? State::kExtension : State::kSizeLf;
  return {};
}

Refusal Chunks::TakeTrailerByte(char c) {
  if (++trailer_bytes_ > bounds_.chunk_extra_bytes_max) return kTrailerTooLong;
  if (state_ == State::kTrailerLf) return c == '\n' ? EndTrailerLine() : kChunkLineEnd;
  if (c == '\n') return kChunkLineEnd;
  if (c == '\r') {
    state_ = State::kTrailerLf;
    return {};
  }
  if (trailer_line_.empty() && (c == ' ' || c == '\t')) return kTrailerFolded;
  trailer_line_.push_back(c);
  return {};
}

Refusal Chunks::EndTrailerLine() {
  if (trailer_line_.empty()) {
    state_ = State::kDone;
    return {};
  }
  const std::string_view line = trailer_line_;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return kMalformedField;
  if (!std::all_of(line.begin(), line.end(), IsFieldChar)) return kMalformedField;
  const std::string_view name = line.substr(0, colon);
  if (IsFramingField(name) || LooksLikeFramingField(name) || EqualsIgnoreCase(name, "Host"))
    return kFieldOfTheHead;
  if (++trailer_fields_ > bounds_.fields_max) return kTooManyFields;
  if (trailers_ != nullptr) trailers_->Add(name, base::Trimmed(line.substr(colon + 1)));
  trailer_line_.clear();
  state_ = State::kTrailer;
  return {};
}

}  // namespace headgate::http
