// Include in one test file of a folder: every `new` of the folder's test binary is counted from
// then on, so that a test can say that a path makes none.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace headgate::testing {

inline std::atomic<uint64_t> allocation_count{0};

}  // namespace headgate::testing

// Not inlined: GCC 12 would take the free below for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  headgate::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
// What the library tries to allocate (a buffer of stable_sort) is given back by the same delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  headgate::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
