// The buffer in which nghttp2 builds a frame. It allocates 16 KiB for it with each session, but
// uses them only during mem_send, which Endpoint always calls until nothing is left. So all
// servers' sessions of a thread share one buffer, and an idle connection costs 10 KiB instead
// of 26.
#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>
#include <memory>

namespace headgate::http::http2 {

// A session must be created and used on the same thread.
class FrameBuffer {
 public:
  FrameBuffer() : bytes_(OfThisThread()) {}
  FrameBuffer(const FrameBuffer&) = delete;

  bool is_of_this_thread() const { return bytes_ == OfThisThread(); }

  // Functions for nghttp2 that allocate everything but the buffer. This object must outlive the
  // session.
  nghttp2_mem Allocator();

 private:
  // The size that nghttp2 requests: a frame of 2^14 bytes, its header, and the length of its
  // padding.
  static constexpr size_t kSize = 16384 + 9 + 1;
  struct alignas(std::max_align_t) Bytes : std::array<char, kSize> {};

  static std::shared_ptr<Bytes> OfThisThread();
  static FrameBuffer& Self(void* user) { return *static_cast<FrameBuffer*>(user); }
  static void* Malloc(size_t size, void* user);
  static void Free(void* memory, void* user);
  static void* Calloc(size_t count, size_t size, void* user);
  static void* Realloc(void* memory, size_t size, void* user);

  std::shared_ptr<Bytes> bytes_;
  // Whether the session has the buffer; further blocks of this size are allocated.
  bool given_ = false;
};

}  // namespace headgate::http::http2
