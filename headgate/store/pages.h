// Zeroed memory straight from the operating system: resident only where it is touched.
#pragma once

#include <cstdint>

namespace headgate::store {

// A huge page is one address translation for 2 MiB, which is most of what a look-up in a large
// table costs otherwise. But the first touch of one waits until all of it is zeroed, milliseconds
// on some machines. So a large table begins with small pages, and asks for huge ones when it has
// touched most of them: the system then merges them in the background.
enum class HugePages { kNo, kLater };

// Crashes where the system has no memory to give. Aligned to 4 KiB at least, to 2 MiB for large
// huge-page mappings.
void* MapPages(uint64_t bytes, HugePages huge);
// For pages that were mapped with kLater, or a part of them, once. Takes microseconds.
void MergePages(void* pages, uint64_t bytes);
void UnmapPages(void* pages, uint64_t bytes);

}  // namespace headgate::store
