// Zeroed memory directly from the operating system, resident only where it is touched.
#pragma once

#include <cstdint>

namespace headgate::store {

// A huge page needs one address translation per 2 MiB; with small pages, translations are most of
// the cost of a lookup in a large table. But the first touch of a huge page waits until all of it
// is zeroed, which takes milliseconds on some machines. A large table therefore starts with small
// pages and asks for huge pages once it has touched most of them. The system then merges them in
// the background.
enum class HugePages { kNo, kLater };

// Crashes if the system has no memory left. Aligned to at least 4 KiB, and to 2 MiB for large
// mappings with huge pages.
void* MapPages(uint64_t bytes, HugePages huge);
// Asks for huge pages for (part of) a mapping made with kLater. Call it once. Takes microseconds.
void MergePages(void* pages, uint64_t bytes);
void UnmapPages(void* pages, uint64_t bytes);

}  // namespace headgate::store
