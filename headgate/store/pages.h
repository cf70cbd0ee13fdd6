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

// Throws std::bad_alloc if the system refuses, as operator new does: a library must not end the
// program that uses it. Aligned to at least 4 KiB, and to 2 MiB for large mappings with huge pages.
void* MapPages(uint64_t bytes, HugePages huge);
// Asks for huge pages for (part of) a mapping made with kLater. Call it once. Takes microseconds.
void MergePages(void* pages, uint64_t bytes);
void UnmapPages(void* pages, uint64_t bytes);

// An array of zeroed elements in pages of its own. Runs no constructors and no destructors.
template <typename T>
class Mapped {
 public:
  Mapped(uint64_t count, HugePages huge)
      : bytes_(count * sizeof(T)), elements_(static_cast<T*>(MapPages(bytes_, huge))) {}
  ~Mapped() { UnmapPages(elements_, bytes_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  // Used like a pointer to the first element.
  operator T*() const { return elements_; }  // NOLINT(google-explicit-constructor)

 private:
  const uint64_t bytes_;
  T* const elements_;
};

}  // namespace headgate::store
