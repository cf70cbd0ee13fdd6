// The memory of this process that is resident in RAM.
#pragma once

#include <cstdint>

namespace headgate::app {

// Bytes, as the kernel counts them; 0 if /proc cannot be read.
uint64_t ResidentBytes();

}  // namespace headgate::app
