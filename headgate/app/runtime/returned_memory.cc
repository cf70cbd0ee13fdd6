#include "headgate/app/runtime/returned_memory.h"

#include <malloc.h>

#include <algorithm>

namespace headgate::app {
namespace {

// Each buffer that net counts against its budget is mapped on its own. With a higher threshold,
// buffers below it would leave holes in the heap: 64 MiB for 1,000 connections. glibc raises its
// default threshold up to 32 MiB when a mapped block is freed; a threshold set here stays fixed.
constexpr int kMapFromBytes = 16 * 1024;

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
