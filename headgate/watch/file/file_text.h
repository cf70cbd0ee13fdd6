// Reads the rule files that a list of paths names.
//
// A path is a file or a directory. A directory stands for its files *.yaml and *.yml in the order
// of their names, without hidden files and subdirectories. Symbolic links are followed. A file that
// is named twice, or both directly and by its directory, is read once, at its first place.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "headgate/rule/problem.h"

namespace headgate::watch::file {

inline constexpr size_t kFilesMax = 1'000;
// Room is left for the name of the temporary file that replaces it (NAME_MAX is 255).
inline constexpr size_t kFileNameBytesMax = 200;
inline constexpr size_t kFileBytesMax = size_t{64} << 20;

struct FileText {
  std::string path;
  std::string text;
  bool operator==(const FileText&) const = default;
};

// The files, or the reason why they could not be read. All or nothing: if there is a problem, there
// are no files.
struct FilesRead {
  std::vector<FileText> files;
  std::vector<rule::Problem> problems;
  bool torn = false;     // a file changed during the read: read again
  bool awaited = false;  // the only problems are directories without a rule file
};

FilesRead ReadFiles(std::span<const std::string> paths);

// The metadata of a file that shows, without reading the file, whether it has changed.
struct FileStamp {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = -1;  // −1: does not exist or is not readable
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileStamp&) const = default;
};
std::vector<FileStamp> StampFiles(std::span<const std::string> paths);

// A name in a directory that the resolution of a path depends on: the file itself, each symbolic
// link on the way, or the first missing component. An empty name stands for everything in the
// directory.
struct WatchedName {
  std::string directory;
  std::string name;
  auto operator<=>(const WatchedName&) const = default;
};
std::set<WatchedName> NamesToWatch(std::span<const std::string> paths);

}  // namespace headgate::watch::file
