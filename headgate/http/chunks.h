// Decodes a chunked body (RFC 9112, 7.1) byte by byte, so the result never depends on how the bytes
// were split into reads.
//
// Chunk extensions and trailer fields are checked and dropped. Both are bounded over the whole
// body, so a small body cannot have endless framing. Only CR LF ends a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"

namespace headgate::http {

class Chunks {
 public:
  // `bounds` must outlive the decoder.
  explicit Chunks(const Bounds& bounds) : bounds_(bounds) {}

  // Call it before the first byte of each body.
  void Begin();

  struct Progress {
    size_t taken = 0;  // all bytes, unless the body ended earlier
    bool done = false;
    Refusal refusal{};
  };
  // Appends the content in `bytes` to `body`; the caller may empty `body` between calls. Must not
  // be called again once the body is done or refused.
  Progress Take(std::string_view bytes, std::string& body);

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
};

}  // namespace headgate::http
