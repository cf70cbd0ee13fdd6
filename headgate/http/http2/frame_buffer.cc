#include "headgate/http/http2/frame_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace headgate::http::http2 {

std::shared_ptr<FrameBuffer::Bytes> FrameBuffer::OfThisThread() {
  thread_local const std::shared_ptr<Bytes> bytes = std::make_shared<Bytes>();
  return bytes;
}

nghttp2_mem FrameBuffer::Allocator() {
  return {
      .mem_user_data = this, .malloc = Malloc, .free = Free, .calloc = Calloc, .realloc = Realloc};
}

void* FrameBuffer::Malloc(size_t size, void* user) { return Realloc(nullptr, size, user); }

void FrameBuffer::Free(void* memory, void* user) {
  if (memory != Self(user).bytes_.get()) std::free(memory);
}

void* FrameBuffer::Calloc(size_t count, size_t size, void* /*user*/) {
  return std::calloc(count, size);
}

void* FrameBuffer::Realloc(void* memory, size_t size, void* user) {
  FrameBuffer& self = Self(user);
  if (memory == nullptr && size == kSize && !std::exchange(self.given_, true))
    return self.bytes_.get();
  if (memory != self.bytes_.get()) return std::realloc(memory, size);
  void* const moved = std::malloc(size);
  if (moved != nullptr) std::memcpy(moved, memory, std::min(size, kSize));
  return moved;
}

}  // namespace headgate::http::http2
