#include "headgate/watch/file/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "headgate/files/files.h"
#include "headgate/wire/json.h"

namespace headgate::watch::file {
namespace {

// Documents may be private to administrators.
constexpr mode_t kMode = 0600;

// Another process rotates the file between its opening and its locking at most this often in a row.
constexpr int kRotatedMax = 10;

absl::Status SystemError(std::string_view what, const std::string& path) {
  return absl::UnavailableError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

std::optional<rule::Note> NoteOf(std::string_view line) {
  const wire::Json object = wire::Json::Parse(line).value_or(nullptr);
  const wire::Json& id = object["id"];
  const wire::Json& document = object["document"];
  if (!id.is_string() || !document.is_string()) return std::nullopt;
  return rule::Note{.id = std::string(id.text()),
                    .document = std::string(document.text()),
                    .text = std::string(line)};
}

}  // namespace

FileJournal::FileJournal(std::string path, Options options)
    : path_(files::FollowLinks(path).value_or(path)), options_(options) {}

FileJournal::~FileJournal() { Close(); }

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

void FileJournal::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

absl::Status FileJournal::Open() {
  if (fd_ >= 0 && IsInPlace()) return absl::OkStatus();
  Close();
  fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode);
  if (fd_ < 0) return SystemError("open", path_);
  struct stat stat {};
  if (::fstat(fd_, &stat) != 0 || !S_ISREG(stat.st_mode)) {
    Close();
    return absl::InvalidArgumentError(fmt::format("{} is not a regular file", path_));
  }
  return absl::OkStatus();
}

// Opens the file and locks it. Another process may rotate it between the two; then the lock is on
// the wrong file.
absl::Status FileJournal::Lock() {
  for (int rotated = 0; rotated < kRotatedMax; ++rotated) {
    HEADGATE_RETURN_IF_ERROR(Open());
    HEADGATE_RETURN_IF_ERROR(files::LockFile(fd_, path_));
    if (IsInPlace()) return absl::OkStatus();
    Close();
  }
  return absl::UnavailableError(fmt::format("cannot lock {}: others rename it", path_));
}

// The lock stays on the file that is renamed, so no other process rotates at the same time: it
// would need the lock on the file that the path leads to.
absl::Status FileJournal::Rotate() {
  std::error_code error;
  for (uint32_t number = options_.files_max - 1; number > 0; --number) {
    std::filesystem::rename(PathOf(number - 1), PathOf(number), error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return absl::UnavailableError(
          fmt::format("cannot rename {}: {}", PathOf(number - 1), error.message()));
    }
  }
  Close();
  return Lock();
}

// Needs the lock. Either the whole line is in the file afterwards, or nothing of it.
absl::Status FileJournal::Write(std::string_view line) {
  struct stat stat {};
  if (::fstat(fd_, &stat) != 0) return SystemError("read", path_);
  // The end of a line that a crash cut off must not swallow the next one.
  std::string whole;
  char last = '\n';
  if (stat.st_size > 0 && ::pread(fd_, &last, 1, stat.st_size - 1) == 1 && last != '\n')
    whole = "\n";
  whole += line;
  std::string_view rest = whole;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const absl::Status failed = SystemError("write", path_);
      // A part of a line that stays is skipped by readers.
      [[maybe_unused]] const int cut = ::ftruncate(fd_, stat.st_size);
      return failed;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status FileJournal::Append(std::string_view line) {
  HEADGATE_RETURN_IF_ERROR(Lock());
  // Other processes write to the file too, so its size is known only under the lock.
  struct stat stat {};
  absl::Status status = ::fstat(fd_, &stat) == 0 ? absl::OkStatus() : SystemError("read", path_);
  const auto size = static_cast<size_t>(stat.st_size);
  const bool rotates = size > 0 && size + line.size() > options_.file_bytes_max;
  if (status.ok() && rotates) status = Rotate();
  if (status.ok()) status = Write(line);
  if (status.ok() && ::fdatasync(fd_) != 0) status = SystemError("sync", path_);
  if (status.ok() && (rotates || size == 0)) status = files::SyncDirectoryOf(path_);
  if (fd_ >= 0) ::flock(fd_, LOCK_UN);
  return status;
}

void FileJournal::Put(const rule::Note& note, OnNoted done) { done(Append(note.text + "\n")); }

void FileJournal::Read(std::string_view document, size_t count, OnNotes done) {
  std::vector<rule::Note> notes;
  absl::flat_hash_set<std::string> seen;
  // Every line about the document contains this; most others are not parsed. A name with escapes
  // can be written in several ways, so it is looked for in every line.
  std::string quoted = document.empty() ? "" : wire::Json(document).Text();
  if (quoted.find('\\') != std::string::npos) quoted.clear();
  for (uint32_t number = 0; number < options_.files_max && notes.size() < count; ++number) {
    const auto text = files::ReadRegularFile(PathOf(number), options_.file_bytes_max * 2);
    if (absl::IsNotFound(text.status())) break;
    if (!text.ok()) return done(absl::UnavailableError(text.status().message()));
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
