#include "headgate/watch/file/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "headgate/disk/files.h"

namespace headgate::watch::file {
namespace {

// Documents may be private to those who administrate.
constexpr mode_t kMode = 0600;

absl::Status SystemError(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

std::optional<rule::Note> NoteOf(std::string_view line) {
  using nlohmann::json;
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto id = object.find("id");
  const auto document = object.find("document");
  if (id == object.end() || !id->is_string()) return std::nullopt;
  if (document == object.end() || !document->is_string()) return std::nullopt;
  return rule::Note{.id = id->get<std::string>(),
                    .document = document->get<std::string>(),
                    .text = std::string(line)};
}

}  // namespace

FileJournal::FileJournal(std::string path, Options options)
    : path_(std::move(path)), options_(options) {}

FileJournal::~FileJournal() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status FileJournal::Check(const std::string& path) {
  FileJournal journal(path);
  return journal.Open();
}

std::string FileJournal::PathOf(uint32_t number) const {
  return number == 0 ? path_ : fmt::format("{}.{}", path_, number);
}

// Whether the path still leads to the file that is open; somebody may have moved or removed it.
bool FileJournal::IsInPlace() const {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd_, &open) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

absl::Status FileJournal::Open() {
  if (fd_ >= 0 && IsInPlace()) return absl::OkStatus();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode);
  if (fd_ < 0) return SystemError("open", path_);
  struct stat stat {};
  if (::fstat(fd_, &stat) != 0 || !S_ISREG(stat.st_mode)) {
    ::close(std::exchange(fd_, -1));
    return absl::InvalidArgumentError(fmt::format("{} is not a regular file", path_));
  }
  bytes_ = static_cast<size_t>(stat.st_size);
  // The end of a line that a crash cut off must not swallow the next one.
  char last = '\n';
  if (bytes_ > 0 && ::pread(fd_, &last, 1, stat.st_size - 1) == 1 && last != '\n') {
    if (::write(fd_, "\n", 1) == 1) ++bytes_;
  }
  return absl::OkStatus();
}

absl::Status FileJournal::Rotate() {
  ::close(std::exchange(fd_, -1));
  std::error_code error;
  for (uint32_t number = options_.files_max - 1; number > 0; --number) {
    std::filesystem::rename(PathOf(number - 1), PathOf(number), error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return absl::UnavailableError(
          fmt::format("cannot rename {}: {}", PathOf(number - 1), error.message()));
    }
  }
  return Open();
}

absl::Status FileJournal::Append(std::string_view line) {
  HEADGATE_RETURN_IF_ERROR(Open());
  if (bytes_ > 0 && bytes_ + line.size() > options_.file_bytes_max)
    HEADGATE_RETURN_IF_ERROR(Rotate());
  const size_t begin = bytes_;
  while (!line.empty()) {
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const absl::Status failed = SystemError("write", path_);
      if (::ftruncate(fd_, static_cast<off_t>(begin)) == 0) bytes_ = begin;
      return failed;
    }
    bytes_ += static_cast<size_t>(written);
    line.remove_prefix(static_cast<size_t>(written));
  }
  return ::fdatasync(fd_) == 0 ? absl::OkStatus() : SystemError("sync", path_);
}

void FileJournal::Put(const rule::Note& note, OnNoted done) { done(Append(note.text + "\n")); }

void FileJournal::Read(std::string_view document, size_t count, OnNotes done) {
  std::vector<rule::Note> notes;
  absl::flat_hash_set<std::string> seen;
  // Every line about the document contains this; most others are not parsed.
  const std::string quoted =
      document.empty()
          ? ""
          : nlohmann::json(document).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (uint32_t number = 0; number < options_.files_max && notes.size() < count; ++number) {
    const auto text = disk::ReadRegularFile(PathOf(number), options_.file_bytes_max * 2);
    if (absl::IsNotFound(text.status())) break;
    if (!text.ok()) return done(text.status());
    // From the end, so that the last line with an id is the one that counts.
    std::string_view rest = *text;
    while (!rest.empty() && notes.size() < count) {
      if (rest.back() == '\n') rest.remove_suffix(1);
      const size_t line_end = rest.rfind('\n');
      const size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
      const std::string_view line = rest.substr(begin);
      rest = rest.substr(0, begin);
      if (line.find(quoted) == std::string_view::npos) continue;
      std::optional<rule::Note> note = NoteOf(line);
      if (!note || (!document.empty() && note->document != document)) continue;
      if (seen.insert(note->id).second) notes.push_back(*std::move(note));
    }
  }
  done(std::move(notes));
}

}  // namespace headgate::watch::file
