#include "headgate/app/returned_memory.h"

#include <malloc.h>

#include <algorithm>

namespace headgate::app {
namespace {

// glibc raises its own threshold up to 32 MiB once such a block is freed; a fixed one does not move.
constexpr int kMapFromBytes = 128 * 1024;

}  // namespace

void MapLargeBuffers() { ::mallopt(M_MMAP_THRESHOLD, kMapFromBytes); }

void ReturnedMemory::Step(uint64_t buffer_bytes, uint64_t connections_shed) {
  const bool was_full = connections_shed > shed_;
  shed_ = connections_shed;
  peak_ = std::max(peak_, was_full ? buffer_bytes + kFallBytes : buffer_bytes);
  if (peak_ - buffer_bytes < kFallBytes) return;
  ::malloc_trim(0);
  ++times_;
  peak_ = buffer_bytes;
}

}  // namespace headgate::app
