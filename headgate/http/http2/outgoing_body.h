// One direction of a stream on its way out: bytes that are not in frames yet, and how they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/http/fields.h"
#include "headgate/http/message.h"

namespace headgate::http::http2 {

class OutgoingBody {
 public:
  // A sized body checks that it gets exactly its size.
  void Begin(const BodyLength& length);
  // The sum must not exceed a sized body's size.
  void Append(std::string_view bytes);
  // Keeps `trailers` only if the body is unsized. Returns false if a sized body is incomplete.
  bool End(const Fields& trailers);
  // Drops the bytes that are not framed yet.
  void Discard();

  bool empty() const { return taken_ == bytes_.size(); }
  size_t size() const { return bytes_.size() - taken_; }
  // The memory of the buffer; 0 if it is small.
  size_t held_bytes() const {
    return bytes_.capacity() > std::string().capacity() ? bytes_.capacity() : 0;
  }
  bool ended() const { return ended_; }
  // Bytes that were framed since the beginning.
  uint64_t taken_in_all() const { return taken_in_all_; }
  // Fields that follow the last byte.
  const Fields& trailers() const { return trailers_; }

  // At most `bytes_max` bytes from the front, for a frame. Valid until the next call.
  std::string_view Front(size_t bytes_max) const;
  // Removes them. Returns true if the size falls below http::kWindowBytes by this.
  bool Remove(size_t bytes);

 private:
  std::string bytes_;
  size_t taken_ = 0;  // bytes at the front that are framed
  uint64_t taken_in_all_ = 0;
  std::optional<uint64_t> missing_;  // of a sized body
  bool unsized_ = false;
  bool ended_ = false;
  Fields trailers_;
};

}  // namespace headgate::http::http2
