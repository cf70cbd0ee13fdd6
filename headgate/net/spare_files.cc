#include "headgate/net/spare_files.h"

#include <fcntl.h>

#include <cerrno>
#include <mutex>

namespace headgate::net {

FileDescriptor SpareFiles::Open(size_t kept, absl::FunctionRef<int()> open) {
  {
    const std::shared_lock lock(mutex_);
    FileDescriptor opened(open());
    if (opened || (errno != EMFILE && errno != ENFILE)) return opened;
  }
  const std::unique_lock lock(mutex_);
  if (spares_.size() <= kept) {
    errno = EMFILE;
    return {};
  }
  spares_.pop_back();
  missing_.store(true, std::memory_order_relaxed);
  return FileDescriptor(open());
}

bool SpareFiles::Refill() {
  if (!missing_.load(std::memory_order_relaxed)) return true;
  const std::unique_lock lock(mutex_);
  while (spares_.size() < kCount) {
    FileDescriptor spare(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!spare) return false;
    spares_.push_back(std::move(spare));
  }
  missing_.store(false, std::memory_order_relaxed);
  return true;
}

}  // namespace headgate::net
