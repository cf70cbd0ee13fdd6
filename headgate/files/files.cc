#include "headgate/files/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "headgate/net/file_descriptor.h"

namespace headgate::files {
namespace {

constexpr size_t kSecretBytesMax = 4096;
constexpr int kLinksMax = 40;  // the limit of the kernel
constexpr uint32_t kOutputMode = 0644;
// One second in all. A lock is held for one write, unless its holder is stopped.
constexpr int kLockWaitMs = 1;
constexpr int kLockWaitsMax = 1000;

absl::Status FileError(std::string_view what, const std::string& path, int error) {
  const std::string text =
      fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

// Returns 0 or the error number.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

net::FileDescriptor Open(const char* path, int flags, net::SpareFiles* spare_files) {
  const auto open = [&] { return ::open(path, flags, 0600); };
  if (spare_files == nullptr) return net::FileDescriptor(open());
  return spare_files->Open(net::SpareFiles::kKeptFromSnapshots, open);
}

net::FileDescriptor OpenDirectoryOf(const std::string& path, net::SpareFiles* spare_files) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return Open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC,
              spare_files);
}

struct Opened {
  net::FileDescriptor file;
  size_t size;
};

absl::StatusOr<Opened> OpenRegular(const std::string& path) {
  net::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return FileError("open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return FileError("read", path, errno);
  if (S_ISDIR(info.st_mode)) return FileError("read", path, EISDIR);
  return Opened{std::move(file), static_cast<size_t>(info.st_size)};
}

std::string TemporaryOf(const std::string& path) { return path + ".new"; }

absl::StatusOr<net::FileDescriptor> CreateAnew(const std::string& path,
                                               net::SpareFiles* spare_files) {
  // Remove a file left behind by a crash: it may have a different mode.
  ::unlink(path.c_str());
  net::FileDescriptor file =
      Open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, spare_files);
  if (!file) return FileError("create", path, errno);
  return file;
}

bool IsOfProc(const std::filesystem::path& link) {
  struct statfs info {};
  const std::filesystem::path parent = link.parent_path();
  return ::statfs(parent.empty() ? "." : parent.c_str(), &info) == 0 &&
         info.f_type == PROC_SUPER_MAGIC;
}

// The file that the bytes for a path are written to: the target, if the path is a symbolic link.
struct Place {
  std::string path;
  bool is_there = false;
  struct stat info {};  // if it is there

  bool replaceable() const { return !is_there || S_ISREG(info.st_mode); }
  // FollowLinks leaves only links to open files.
  bool writable_in_place() const {
    return is_there && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISLNK(info.st_mode));
  }
};

absl::StatusOr<Place> PlaceOf(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(std::string target, FollowLinks(path));
  Place place{.path = std::move(target)};
  place.is_there = ::lstat(place.path.c_str(), &place.info) == 0;
  if (place.is_there && S_ISDIR(place.info.st_mode))
    return absl::InvalidArgumentError(fmt::format("{} is a directory", path));
  return place;
}

absl::StatusOr<std::string> PathToReplace(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(Place place, PlaceOf(path));
  if (!place.replaceable())
    return absl::InvalidArgumentError(fmt::format("{} is not a regular file", path));
  return std::move(place.path);
}

// Gives the open file the owner and group of `path`. A process that is not root may at most give it
// another group.
void TakeOwner(const std::string& path, int fd) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;
  if (::fchown(fd, info.st_uid, info.st_gid) == 0) return;
  [[maybe_unused]] const int group_only = ::fchown(fd, static_cast<uid_t>(-1), info.st_gid);
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  HEADGATE_ASSIGN_OR_RETURN(const Opened opened, OpenRegular(path));
  std::string text;
  // A pipe or /dev/stdin has no size, so read until the end of file.
  while (text.size() <= bytes_max) {
    char buffer[16 * 1024];
    const ssize_t count = ::read(opened.file.get(), buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return FileError("read", path, errno);
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
  }
  return absl::ResourceExhaustedError(fmt::format("{} is longer than {} bytes", path, bytes_max));
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t bytes_max) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(fmt::format("cannot read {}: it is not a file", path));
  return ReadFile(path, bytes_max);
}

absl::StatusOr<std::string> ReadFirstLine(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kSecretBytesMax));
  std::string line = text.substr(0, text.find_first_of("\r\n"));
  if (line.empty())
    return absl::InvalidArgumentError(fmt::format("the first line of {} is empty", path));
  return line;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(const Opened opened, OpenRegular(path));
  if (opened.size == 0) return MappedFile(nullptr, 0);
  void* data = ::mmap(nullptr, opened.size, PROT_READ, MAP_PRIVATE, opened.file.get(), 0);
  if (data == MAP_FAILED) return FileError("read", path, errno);
  return MappedFile(data, opened.size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path target = path;
  for (int links = 0; links <= kLinksMax; ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(target, error);
    // An error means that it is not a link, or that opening it will report the same error.
    if (error || IsOfProc(target)) return target.string();
    target = target.parent_path() / next;
  }
  return absl::InvalidArgumentError(
      fmt::format("{} is a symbolic link that leads in a circle", path));
}

absl::Status LockFile(int fd, const std::string& path) {
  for (int waits = 0; waits < kLockWaitsMax; ++waits) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError("lock", path, errno);
    ::poll(nullptr, 0, kLockWaitMs);
  }
  return absl::UnavailableError(
      fmt::format("cannot lock {}: another process holds its lock", path));
}

absl::StatusOr<DirectoryLock> DirectoryLock::OfFile(const std::string& path) {
  net::FileDescriptor directory = OpenDirectoryOf(path, nullptr);
  if (!directory) return FileError("open the directory of", path, errno);
  HEADGATE_RETURN_IF_ERROR(LockFile(directory.get(), "the directory of " + path));
  return DirectoryLock(std::move(directory));
}

absl::Status SyncDirectoryOf(const std::string& path, net::SpareFiles* spare_files) {
  const net::FileDescriptor directory = OpenDirectoryOf(path, spare_files);
  if (directory && ::fsync(directory.get()) != 0)
    return FileError("write the directory of", path, errno);
  return absl::OkStatus();
}

absl::Status ReplaceFile(
    const std::string& path,
    const std::function<void(const std::function<void(std::string_view)>& write)>& produce,
    const ReplaceOptions& options) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string target, PathToReplace(path));
  const std::string temporary = options.temporary.empty() ? TemporaryOf(target) : options.temporary;
  HEADGATE_ASSIGN_OR_RETURN(const net::FileDescriptor file,
                            CreateAnew(temporary, options.spare_files));
  if (options.keep_owner) TakeOwner(target, file.get());
  int error = ::fchmod(file.get(), options.mode) == 0 ? 0 : errno;
  produce([&](std::string_view bytes) {
    if (error == 0) error = WriteAll(file.get(), bytes);
  });
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return FileError("write", path, error);
  }
  return SyncDirectoryOf(target, options.spare_files);
}

absl::Status CheckReplaceable(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string target, PathToReplace(path));
  const std::string temporary = TemporaryOf(target);
  HEADGATE_RETURN_IF_ERROR(CreateAnew(temporary, nullptr).status());
  return ::unlink(temporary.c_str()) == 0 ? absl::OkStatus()
                                          : FileError("remove", temporary, errno);
}

absl::Status WriteOutput(const std::string& path, std::string_view text) {
  HEADGATE_ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  if (!place.writable_in_place()) {
    return ReplaceFile(
        place.path, [&](const auto& write) { write(text); },
        {.mode = place.is_there ? place.info.st_mode & 07777 : kOutputMode, .keep_owner = true});
  }
  // Appends: the file may be open and already hold output, such as the report of the same command.
  const net::FileDescriptor file(
      ::open(place.path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC));
  if (!file) return FileError("open", path, errno);
  const int error = WriteAll(file.get(), text);
  return error == 0 ? absl::OkStatus() : FileError("write", path, error);
}

absl::Status CheckOutput(const std::string& path) {
  HEADGATE_ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  if (!place.writable_in_place()) return CheckReplaceable(place.path);
  return ::faccessat(AT_FDCWD, place.path.c_str(), W_OK, AT_EACCESS) == 0
             ? absl::OkStatus()
             : FileError("write", path, errno);
}

}  // namespace headgate::files
