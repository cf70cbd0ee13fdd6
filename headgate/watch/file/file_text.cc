#include "headgate/watch/file/file_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "headgate/net/file_descriptor.h"

namespace headgate::watch::file {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 40;  // the limit of the kernel
constexpr std::string_view kNameRules = "name a rule file, or a directory of files *.yaml or *.yml";

std::string ErrorText(int error) { return std::generic_category().message(error); }

rule::Problem CannotBe(std::string_view done, const std::string& path, int error) {
  return rule::WholeFileProblem(
      path, fmt::format("cannot be {}: {}", done, ErrorText(error)),
      error == EACCES || error == EPERM ? "let this user read it" : std::string(kNameRules));
}

bool IsRuleFileName(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"));
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The rule files of a directory. Returns nothing if it cannot be listed, and sets `error` to the
// reason.
std::optional<std::vector<std::string>> ListDirectory(const std::string& directory, int& error) {
  std::vector<std::string> files;
  std::error_code code;
  fs::directory_iterator entry(directory, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
    const std::string name = entry->path().filename();
    if (!IsRuleFileName(name) || IsDirectory(entry->path())) continue;
    files.push_back(entry->path());
    if (files.size() > kFilesMax) break;  // too many in any case
  }
  error = code.value();
  if (code) return std::nullopt;
  std::sort(files.begin(), files.end());
  return files;
}

FileStamp StampOf(const std::string& path, const struct stat& info) {
  return {.path = path,
          .device = info.st_dev,
          .inode = info.st_ino,
          .size_bytes = info.st_size,
          .modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
          .changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec};
}

FileStamp StampOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return {.path = path};
  return StampOf(path, info);
}

void ReadFile(const std::string& path, FilesRead& read) {
  // Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
  const net::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat before;
  if (!file || ::fstat(file.get(), &before) != 0) {
    read.problems.push_back(CannotBe("read", path, errno));
    return;
  }
  if (!S_ISREG(before.st_mode)) {
    read.problems.push_back(rule::WholeFileProblem(
        path, "cannot be read: neither a file nor a directory", std::string(kNameRules)));
    return;
  }
  std::string text;
  size_t size = 0;
  if (before.st_size > static_cast<off_t>(kFileBytesMax)) size = kFileBytesMax + 1;
  while (size <= kFileBytesMax) {
    text.resize(std::max<size_t>(size + 4'096, static_cast<size_t>(before.st_size) + 1));
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      read.problems.push_back(CannotBe("read", path, errno));
      return;
    }
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kFileBytesMax) {
    read.problems.push_back(
        rule::WholeFileProblem(path, fmt::format("larger than {} MiB", kFileBytesMax >> 20),
                               "split it into several files"));
    return;
  }
  text.resize(size);
  struct stat after;
  if (::fstat(file.get(), &after) != 0 || StampOf(path, before) != StampOf(path, after) ||
      size != static_cast<size_t>(after.st_size)) {
    read.torn = true;
  }
  read.files.push_back({path, std::move(text)});
}

// The directory without symbolic links and dots; unchanged if it cannot be resolved.
fs::path PlaceOf(const fs::path& directory) {
  std::error_code error;
  fs::path place = fs::canonical(directory.empty() ? "." : directory, error);
  return error ? directory : place;
}

// Every file that the paths name, in order and without duplicates. Counts the directories without a
// rule file; each is a problem too.
std::vector<std::string> ListFiles(std::span<const std::string> paths,
                                   std::vector<rule::Problem>& problems,
                                   size_t& empty_directories) {
  std::vector<std::string> files;
  std::set<fs::path> named;
  const auto add = [&](const fs::path& place, const std::string& file) {
    if (named.insert(place / fs::path(file).filename()).second) files.push_back(file);
  };
  for (const std::string& path : paths) {
    if (!IsDirectory(path)) {
      add(PlaceOf(fs::path(path).parent_path()), path);
      continue;
    }
    const fs::path place = PlaceOf(path);
    if (!named.insert(place).second) continue;
    int error = 0;
    const auto listed = ListDirectory(path, error);
    if (!listed.has_value()) {
      problems.push_back(CannotBe("listed", path, error));
    } else if (listed->empty()) {
      ++empty_directories;
      problems.push_back(rule::WholeFileProblem(path, "no file *.yaml or *.yml in this directory",
                                                "put a rule file there"));
    } else {
      for (const std::string& file : *listed) add(place, file);
    }
  }
  return files;
}

// Resolves a path as the kernel does, and records the names that the result depends on.
class Walk {
 public:
  explicit Walk(std::set<WatchedName>& names) : names_(names) {}

  void Follow(const fs::path& path) {
    fs::path current = "/";
    std::error_code error;
    if (!path.is_absolute()) current = fs::current_path(error);
    int links = 0;
    std::deque<fs::path> rest;
    Prepend(rest, path);
    while (!rest.empty()) {
      const fs::path part = rest.front();
      rest.pop_front();
      if (part.empty() || part == "." || part == "/") continue;
      if (part == "..") {
        current = current.parent_path();
        continue;
      }
      const fs::file_status status = fs::symlink_status(current / part, error);
      if (fs::is_symlink(status)) {
        names_.insert({current, part});
        const fs::path target = fs::read_symlink(current / part, error);
        if (error || ++links > kLinksMax) return;
        if (target.is_absolute()) current = "/";
        Prepend(rest, target);
      } else if (fs::is_directory(status)) {
        current /= part;
        if (rest.empty()) FollowDirectory(current);
      } else {
        names_.insert({current, part});
        return;
      }
    }
  }

 private:
  static void Prepend(std::deque<fs::path>& rest, const fs::path& path) {
    rest.insert(rest.begin(), path.begin(), path.end());
  }

  void FollowDirectory(const fs::path& directory) {
    names_.insert({directory, ""});
    int error = 0;
    const auto files = ListDirectory(directory, error);
    if (!files.has_value()) return;
    for (const fs::path file : *files) {
      std::error_code code;
      if (fs::is_symlink(fs::symlink_status(file, code))) Follow(file);
    }
  }

  std::set<WatchedName>& names_;
};

}  // namespace

FilesRead ReadFiles(std::span<const std::string> paths) {
  FilesRead read;
  size_t empty_directories = 0;
  const std::vector<std::string> files = ListFiles(paths, read.problems, empty_directories);
  if (files.size() > kFilesMax) {
    read.problems.push_back(rule::WholeFileProblem(
        paths[0], fmt::format("more than {} rule files", kFilesMax), "merge some of them"));
  }
  if (read.problems.empty()) {
    for (const std::string& file : files) ReadFile(file, read);
  }
  if (!read.problems.empty()) read.files.clear();
  read.awaited = empty_directories > 0 && read.problems.size() == empty_directories;
  return read;
}

std::vector<FileStamp> StampFiles(std::span<const std::string> paths) {
  std::vector<rule::Problem> problems;
  std::vector<FileStamp> stamps;
  size_t empty_directories = 0;
  const std::vector<std::string> files = ListFiles(paths, problems, empty_directories);
  for (size_t i = 0; i < std::min(files.size(), kFilesMax + 1); ++i)
    stamps.push_back(StampOf(files[i]));
  for (const rule::Problem& problem : problems)
    stamps.push_back({.path = PlaceAndMessage(problem)});
  return stamps;
}

std::set<WatchedName> NamesToWatch(std::span<const std::string> paths) {
  std::set<WatchedName> names;
  for (const std::string& path : paths) Walk(names).Follow(path);
  return names;
}

}  // namespace headgate::watch::file
