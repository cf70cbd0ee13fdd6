// The buffers that output is collected in before it is written.
#pragma once

#include <cstddef>
#include <string>

namespace headgate::net {

// The capacity that a buffer keeps between writes.
inline constexpr size_t kOutputCapacityKept = size_t{1} << 20;

// Empties the buffer for the next write, and returns the memory of an unusually large one.
inline void ReleaseBuffer(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kOutputCapacityKept) std::string().swap(buffer);
}

}  // namespace headgate::net
