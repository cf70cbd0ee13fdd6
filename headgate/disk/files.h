// Files: read whole, and replaced whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/spare_files.h"

namespace headgate::disk {

// NotFound where there is none; otherwise what the system said. Larger files than `bytes_max` are
// refused.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// The first line of a small file, without its end, where it is not empty: a password.
absl::StatusOr<std::string> ReadFirstLine(const std::string& path);

// A file's bytes, mapped while this lives.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const {
    return {static_cast<const char*>(data_), data_ == nullptr ? 0 : size_};
  }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

// The path behind all symbolic links that `path` itself is, whether there is a file or not; the
// same path if it is not a link. InvalidArgument for links that lead in a circle.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

struct ReplaceOptions {
  // Of the new file.
  uint32_t mode = 0600;
  // Taken from if the process has no descriptor left.
  net::SpareFiles* spare_files = nullptr;
};

// Writes what `produce` hands over to a new file beside `path`, and puts it there once it is on the
// disk. A crash at any moment leaves the old file or the new one.
absl::Status ReplaceFile(
    const std::string& path,
    const std::function<void(const std::function<void(std::string_view)>& write)>& produce,
    const ReplaceOptions& options = {});

// Whether ReplaceFile could begin: makes its new file and removes it again.
absl::Status CheckReplaceable(const std::string& path);

}  // namespace headgate::disk
