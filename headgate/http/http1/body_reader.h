// Reads a body in parts, without collecting it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/chunks.h"
#include "headgate/http/fields.h"

namespace headgate::http::http1 {

enum class BodyFraming : uint8_t {
  kNone,
  kSized,
  kChunked,
  kUntilEnd,  // everything, until the direction ends: a tunnel, or a response without a length
};

class BodyReader {
 public:
  // `bounds` must outlive the reader.
  explicit BodyReader(const Bounds& bounds) : chunks_(bounds) {}

  void Begin(BodyFraming framing, uint64_t bytes);

  struct Part {
    size_t taken = 0;
    std::string_view data{};  // points into the bytes given
    bool done = false;
    Refusal refusal{};
  };
  // Takes at most one piece of data, of at most `data_bytes_max` bytes. Everything that can be
  // taken has been taken when a part has neither data nor an end.
  Part Take(std::string_view bytes, size_t data_bytes_max);

  BodyFraming framing() const { return framing_; }
  bool done() const { return done_; }
  // The missing bytes of a sized body.
  uint64_t left() const { return left_; }
  // Complete when the body is.
  const Fields& trailers() const { return trailers_; }

 private:
  BodyFraming framing_ = BodyFraming::kNone;
  bool done_ = true;
  uint64_t left_ = 0;
  Chunks chunks_;
  Fields trailers_;
};

}  // namespace headgate::http::http1
