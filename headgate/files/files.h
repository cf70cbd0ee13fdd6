// Reads whole files, replaces files atomically, and writes to places that a user names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/spare_files.h"

namespace headgate::files {

// NotFound if there is no such file; otherwise the error of the system. Refuses files larger than
// `bytes_max`.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// The same, but never waits: InvalidArgument if it is not a file, such as a pipe.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t bytes_max);

// Reads the first line of a small file, such as a password, without its line end. The line must not
// be empty.
absl::StatusOr<std::string> ReadFirstLine(const std::string& path);

// The bytes of a file, mapped into memory for the lifetime of this object.
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

// Follows `path` for as long as it is a symbolic link, whether or not the last target exists.
// Returns `path` if it is not a link. Stops at a link of the proc file system, such as the one that
// /dev/stdout leads to: it stands for an open file, which need not have a name. InvalidArgument if
// the links form a loop.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

// Locks an open file or directory (flock) against other processes. Waits for the lock for at most a
// second; then Unavailable. `path` names it in messages.
absl::Status LockFile(int fd, const std::string& path);

// Keeps a directory locked while its files are compared and replaced in one step.
class DirectoryLock {
 public:
  // The directory of this file, which need not exist.
  static absl::StatusOr<DirectoryLock> OfFile(const std::string& path);

 private:
  explicit DirectoryLock(net::FileDescriptor directory) : directory_(std::move(directory)) {}
  net::FileDescriptor directory_;
};

// Syncs the directory of a file to disk: a file that was created or renamed keeps its name then.
absl::Status SyncDirectoryOf(const std::string& path, net::SpareFiles* spare_files = nullptr);

struct ReplaceOptions {
  // The mode of the new file.
  uint32_t mode = 0600;
  // The name of the new file before it is renamed, in the same directory. A file of this name is
  // removed. Empty: the name of the old file and ".new".
  std::string temporary{};
  // The new file gets the owner and group of the old one, as far as this process may do that.
  bool keep_owner = false;
  // A descriptor is taken from here if the process has none left.
  net::SpareFiles* spare_files = nullptr;
};

// Writes the output of `produce` to a new file beside `path`, syncs that file to disk and renames
// it to `path`. A crash at any moment leaves either the old file or the new one. If `path` is a
// symbolic link, its target is replaced. InvalidArgument: `path` is something else than a regular
// file, such as a directory or a device; it stays as it is.
absl::Status ReplaceFile(
    const std::string& path,
    const std::function<void(const std::function<void(std::string_view)>& write)>& produce,
    const ReplaceOptions& options = {});

// Checks that ReplaceFile could begin, by creating its new file and removing that again.
absl::Status CheckReplaceable(const std::string& path);

// Writes the output of a command to a place that its user has named: into a pipe, a character
// device or an open file (/dev/stdout), and otherwise as ReplaceFile. A file that is replaced keeps
// its mode and owner. Waits until somebody reads from a pipe.
absl::Status WriteOutput(const std::string& path, std::string_view text);

// Checks that WriteOutput could begin. Opens no pipe, because its reader would see the end.
absl::Status CheckOutput(const std::string& path);

}  // namespace headgate::files
