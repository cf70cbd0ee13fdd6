// Counts every `new` in a test binary, so that a test can check that a path does not allocate.
// Include it in one test file of a folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace headgate::testing {

inline std::atomic<uint64_t> allocation_count{0};

}  // namespace headgate::testing

// Not inlined: otherwise GCC 12 warns about the free below.
[[gnu::noinline]] void* operator new(std::size_t size) {
  headgate::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
// The library's attempts to allocate (for example the buffer of stable_sort) are freed by the same
// delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  headgate::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
