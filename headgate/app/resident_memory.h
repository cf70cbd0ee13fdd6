// How much memory of this process is in RAM.
#pragma once

#include <cstdint>

namespace headgate::app {

// Bytes, as the kernel counts them; 0 where /proc cannot be read.
uint64_t ResidentBytes();

}  // namespace headgate::app
