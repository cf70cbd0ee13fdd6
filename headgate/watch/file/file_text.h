// Reading the rule files that a list of paths names.
//
// A path is a file, or a directory: then its files *.yaml and *.yml, in the order of their names,
// without hidden ones and without subdirectories. Symbolic links are followed. A file that is named
// twice, or by itself and by its directory, is read once, at the first place.
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
inline constexpr size_t kFileBytesMax = size_t{64} << 20;

struct FileText {
  std::string path;
  std::string text;
  bool operator==(const FileText&) const = default;
};

// What was read, or why not. Never less than all of it: with a problem there are no files.
struct FilesRead {
  std::vector<FileText> files;
  std::vector<rule::Problem> problems;
  bool torn = false;     // a file was written while it was read: read again
  bool awaited = false;  // every problem is a directory that has no rule file yet
};

FilesRead ReadFiles(std::span<const std::string> paths);

// Enough of a file's metadata to see that it is no longer what it was, without reading it.
struct FileStamp {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = -1;  // −1: not there, or not readable
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileStamp&) const = default;
};
std::vector<FileStamp> StampFiles(std::span<const std::string> paths);

// A name in a directory on which it depends what a path leads to: the file itself, each symbolic
// link on the way, or the first part that is missing. An empty name: everything in the directory.
struct WatchedName {
  std::string directory;
  std::string name;
  auto operator<=>(const WatchedName&) const = default;
};
std::set<WatchedName> NamesToWatch(std::span<const std::string> paths);

}  // namespace headgate::watch::file
