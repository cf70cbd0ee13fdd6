// Notes about changes as lines of a file, in the order in which they were made. The file only ever
// grows; when it is large enough, PATH is renamed to PATH.1, the old PATH.1 to PATH.2, and so on.
// The oldest is removed. If PATH is a symbolic link, it stays, and the files are beside its target.
//
// A note is on the disk before it is reported as written, and so is the name of a new file.
//
// Several processes may write to one file. They lock it (flock) to write or to rename, and wait for
// the lock for at most a second; no process removes a line of another one.
//
// A note that replaces an earlier one is one more line with the same id. A line that cannot be
// read, such as the end of one that a crash cut off, is skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/rule/journal.h"

namespace headgate::watch::file {

class FileJournal final : public rule::Journal {
 public:
  struct Options {
    size_t file_bytes_max = size_t{8} << 20;
    uint32_t files_max = 10;  // including PATH itself
  };

  explicit FileJournal(std::string path) : FileJournal(std::move(path), Options()) {}
  FileJournal(std::string path, Options options);
  ~FileJournal() override;
  FileJournal(const FileJournal&) = delete;

  // Why the file cannot be written, if it cannot.
  static absl::Status Check(const std::string& path);

  size_t text_bytes_max() const override { return options_.file_bytes_max; }
  void Put(const rule::Note& note, OnNoted done) override;
  void Read(std::string_view document, size_t count, OnNotes done) override;

 private:
  absl::Status Append(std::string_view line);
  bool IsInPlace() const;
  void Close();
  absl::Status Open();
  absl::Status Lock();
  absl::Status Rotate();
  absl::Status Write(std::string_view line);
  std::string PathOf(uint32_t number) const;

  const std::string path_;
  const Options options_;
  int fd_ = -1;
};

}  // namespace headgate::watch::file
