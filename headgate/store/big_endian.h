// Numbers in the format of stored buckets and of calls to stores: big-endian, without padding.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/algorithm/token_bucket.h"

namespace headgate::store {

static_assert(std::endian::native == std::endian::little);

// Appends its buffer to `out` when it is flushed, full or destroyed.
class Packer {
 public:
  explicit Packer(std::string& out) : out_(out) {}
  ~Packer() { Flush(); }
  Packer(const Packer&) = delete;

  Packer& U8(uint8_t value) { return Bytes<1>(value); }
  Packer& U32(uint32_t value) { return Bytes<4>(value); }
  Packer& U64(uint64_t value) { return Bytes<8>(value); }
  Packer& Span(algorithm::ExactSpan span) { return U64(span.ns).U32(span.fraction); }

  void Flush() { out_.append(buffer_.data(), std::exchange(size_, 0)); }

 private:
  template <size_t kBytes>
  Packer& Bytes(uint64_t value) {
    if (size_ + kBytes > buffer_.size()) Flush();
    const uint64_t in_order = __builtin_bswap64(value << (64 - 8 * kBytes));
    std::memcpy(buffer_.data() + size_, &in_order, kBytes);
    size_ += kBytes;
    return *this;
  }

  std::string& out_;
  size_t size_ = 0;
  std::array<char, 64> buffer_;
};

// Returns 0 for reads beyond the end, and complete() is false from then on.
class Unpacker {
 public:
  explicit Unpacker(std::string_view in) : in_(in) {}

  uint8_t U8() { return static_cast<uint8_t>(Bytes<1>()); }
  uint32_t U32() { return static_cast<uint32_t>(Bytes<4>()); }
  uint64_t U64() { return Bytes<8>(); }
  bool complete() const { return complete_; }
  std::string_view rest() const { return in_; }

 private:
  template <size_t kBytes>
  uint64_t Bytes() {
    if (in_.size() < kBytes) {
      complete_ = false;
      in_ = {};
      return 0;
    }
    uint64_t in_order = 0;
    std::memcpy(&in_order, in_.data(), kBytes);
    in_.remove_prefix(kBytes);
    return __builtin_bswap64(in_order) >> (64 - 8 * kBytes);
  }

  std::string_view in_;
  bool complete_ = true;
};

}  // namespace headgate::store
