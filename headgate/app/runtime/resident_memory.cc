#include "headgate/app/runtime/resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "headgate/net/file_descriptor.h"

namespace headgate::app {

// /proc/self/statm: pages of the whole address space, pages resident, …
uint64_t ResidentBytes() {
  const net::FileDescriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char buffer[128];
  const ssize_t size = file ? ::read(file.get(), buffer, sizeof(buffer)) : 0;
  if (size <= 0) return 0;
  const std::string_view text(buffer, static_cast<size_t>(size));
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  uint64_t pages = 0;
  const auto [end, error] =
      std::from_chars(text.data() + space + 1, text.data() + text.size(), pages);
  return error == std::errc() ? pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace headgate::app
