// Zeroed memory straight from the operating system: resident only where it is touched.
#pragma once

#include <cstdint>

namespace headgate::store {

// Huge pages where the system grants them: one address translation for 2 MiB, which is most of what a look-up in a
// large table costs otherwise.
enum class HugePages { kNo, kYes };

// Crashes where the system has no memory to give. Aligned to 4 KiB at least, to 2 MiB for large huge-page mappings.
void* MapPages(uint64_t bytes, HugePages huge);
void UnmapPages(void* pages, uint64_t bytes);

}  // namespace headgate::store
