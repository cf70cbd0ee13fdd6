// Decodes a chunked body (RFC 9112, 7.1) byte by byte, so the result never depends on how the bytes
// were split into reads.
//
// Chunk extensions are checked and dropped, trailer fields are checked and kept if wanted. Both are
// bounded over the whole body, so a small body cannot have endless framing; a body may have about
// as many bytes of extensions as of content. Only CR LF ends a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/fields.h"

namespace headgate::http {

class Chunks {
 public:
  // `bounds` must outlive the decoder.
  explicit Chunks(const Bounds& bounds) : bounds_(bounds) {}

  // Call it before the first byte of each body. `trailers` gets the fields of the trailer, unless
  // it is null; it must outlive the body.
  void Begin(Fields* trailers = nullptr);

  struct Progress {
    size_t taken = 0;  // all bytes, unless the body ended earlier
    bool done = false;
    Refusal refusal{};
  };
  // Appends the content in `bytes` to `body`; the caller may empty `body` between calls. Must not
  // be called again once the body is done or refused.
  Progress Take(std::string_view bytes, std::string& body);

  struct Piece {
    size_t taken = 0;
    std::string_view data{};  // points into `bytes`
    bool done = false;
    Refusal refusal{};
  };
  // Takes the bytes up to the end of the first piece of content, of at most `data_bytes_max` bytes,
  // which is not copied. Call it again until there is neither data nor an end.
  Piece TakePiece(std::string_view bytes, size_t data_bytes_max);

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLf,
    kDone
  };

  Refusal TakeByte(char c);
  Refusal EndSize(char c);
  Refusal TakeTrailerByte(char c);
  Refusal EndTrailerLine();

  const Bounds& bounds_;
  State state_ = State::kSize;
  uint32_t digits_ = 0;  // digits of the chunk's size so far
  // The size of the chunk while that is being read, then the number of missing bytes.
  uint64_t left_ = 0;
  uint64_t body_bytes_ = 0;  // content so far
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  size_t trailer_fields_ = 0;
  std::string trailer_line_;
  Fields* trailers_ = nullptr;
};

}  // namespace headgate::http
