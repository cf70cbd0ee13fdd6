// Memory of large requests goes back to the system once they are done, instead of staying with the
// allocator.
#pragma once

#include <cstdint>

namespace headgate::app {

// At start: buffers of 16 KiB and more get pages of their own, which freeing one returns.
void MapLargeBuffers();

// Smaller ones leave holes in the allocator's heaps; those are returned after a peak.
class ReturnedMemory {
 public:
  // Returns holes to the system if the buffers fell this far.
  static constexpr uint64_t kFallBytes = uint64_t{8} << 20;

  // Call it every second or so with what the buffers hold, and how many connections were closed for
  // it so far: those show a peak between two calls. Takes milliseconds when it returns memory.
  void Step(uint64_t buffer_bytes, uint64_t connections_shed);

  uint64_t times() const { return times_; }

 private:
  uint64_t peak_ = 0;  // since memory was last returned
  uint64_t shed_ = 0;
  uint64_t times_ = 0;
};

}  // namespace headgate::app
