#include "headgate/store/pages.h"

#include <sys/mman.h>

#include <new>

namespace headgate::store {
namespace {

constexpr uint64_t kHugePage = 2u << 20;

}  // namespace

void* MapPages(uint64_t bytes, HugePages huge) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  // Some systems use huge pages even if not asked.
  if (huge == HugePages::kLater && bytes >= kHugePage) madvise(pages, bytes, MADV_NOHUGEPAGE);
  return pages;
}

void MergePages(void* pages, uint64_t bytes) { madvise(pages, bytes, MADV_HUGEPAGE); }

void UnmapPages(void* pages, uint64_t bytes) { munmap(pages, bytes); }

}  // namespace headgate::store
