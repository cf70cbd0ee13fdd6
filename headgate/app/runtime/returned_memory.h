// Returns the memory of large requests to the system when they are done, instead of keeping it in
// the allocator.
#pragma once

#include <cstdint>

namespace headgate::app {

// Call it at start. Gives buffers of 16 KiB and more pages of their own, so that freeing a buffer
// returns its pages.
void MapLargeBuffers();

// Smaller buffers leave holes in the allocator's heaps; this class returns them after a peak.
class ReturnedMemory {
 public:
  // Holes are returned when the buffers have shrunk by this much.
  static constexpr uint64_t kFallBytes = uint64_t{8} << 20;

  // Call it about every second with the bytes in buffers, and the number of connections closed so
  // far to free memory, which reveals a peak between two calls. Takes milliseconds when it returns
  // memory.
  void Step(uint64_t buffer_bytes, uint64_t connections_shed);

  uint64_t times() const { return times_; }

 private:
  uint64_t peak_ = 0;  // since memory was last returned
  uint64_t shed_ = 0;
  uint64_t times_ = 0;
};

}  // namespace headgate::app
